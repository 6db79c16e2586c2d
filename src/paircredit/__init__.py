"""Learned pairwise weights for temporal credit assignment.

The estimators are here at the top; everything else lives in its room: `paircredit.weights`, `paircredit.metagradient`,
`paircredit.envs`, `paircredit.methods`, `paircredit.training`, `paircredit.analysis`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paircredit.errors import PaircreditError
    from paircredit.estimators import (
        discounted_returns,
        lambda_advantages,
        pairwise_sum,
        pwr,
        pwtd,
        standardise,
        td_errors,
    )
    from paircredit.types import TimeStep, Trajectory

__version__ = "0.1.0"

__all__ = [
    "PaircreditError",
    "TimeStep",
    "Trajectory",
    "discounted_returns",
    "lambda_advantages",
    "pairwise_sum",
    "pwr",
    "pwtd",
    "standardise",
    "td_errors",
]

_ELSEWHERE = {"PaircreditError": "errors", "TimeStep": "types", "Trajectory": "types"}
"""Modules of the names that are no estimators."""


def __getattr__(name: str) -> Any:
    """A public name, whose module is imported when it is first asked for: the command line is ready before JAX is."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'estimators')}"), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
