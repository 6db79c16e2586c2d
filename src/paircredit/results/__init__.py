"""The mechanism of all results: one reader, intervals, charts, pictures, tables. Studies say what is done with it."""

from paircredit.results.curves import Curve, curves
from paircredit.results.exhibits import Claim, Exhibit, Verdict
from paircredit.results.tables import Column, Measure, Table

__all__ = ["Claim", "Column", "Curve", "Exhibit", "Measure", "Table", "Verdict", "curves"]
