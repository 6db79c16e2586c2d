"""How fast training is on this machine, and where the time goes."""

from paircredit.bench.measure import Measurement, measure
from paircredit.bench.training_speed import BenchSpec, bench, growth

__all__ = ["BenchSpec", "Measurement", "bench", "growth", "measure"]
