"""The paper's figures and tables, drawn from runs on disk: one module each."""

from paircredit.figures.registry import FIGURES, FigureSpec
from paircredit.figures.render import to_png, to_svg
from paircredit.figures.save import save_figures
from paircredit.figures.table_registry import TABLES, TableSpec
from paircredit.figures.tables import Column, Table

__all__ = ["FIGURES", "TABLES", "Column", "FigureSpec", "Table", "TableSpec", "save_figures", "to_png", "to_svg"]
