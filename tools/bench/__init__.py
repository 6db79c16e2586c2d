"""How fast training is on this machine, and where the time goes."""

from tools.bench.hosted_speed import bench_hosted
from tools.bench.measure import Measurement, compile_all, compile_program, measure
from tools.bench.training_speed import BenchSpec, bench, growth, refuse_what_cannot_be_timed

__all__ = [
    "BenchSpec",
    "Measurement",
    "bench",
    "bench_hosted",
    "compile_all",
    "compile_program",
    "growth",
    "measure",
    "refuse_what_cannot_be_timed",
]
