"""Training runs where the tools for looking at results are not installed."""

import subprocess
import sys

PROGRAM = """
import sys
for missing in ("duckdb", "tyro", "matplotlib", "jinja2", "rich", "optax", "rlax"):
    sys.modules[missing] = None
from pathlib import Path
from paircredit.studies import make_experiment
from paircredit.experiments.reproduce import run_one
from paircredit.training import train
import paircredit.envs, paircredit.methods, paircredit.metagradient, paircredit.weights, paircredit.analysis
assert len(make_experiment("dag", "paper").runs) == 20
"""


def test_training_imports_without_the_tools_for_results() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
