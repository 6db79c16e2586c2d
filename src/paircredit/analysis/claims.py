"""The paper's claims as checks over runs: all of them, and a verdict for each."""

from __future__ import annotations

from collections.abc import Sequence

from paircredit.analysis.baseline_claims import BASELINE_CLAIMS
from paircredit.analysis.bsuite_claims import BSUITE_CLAIMS
from paircredit.analysis.game_claims import GAME_CLAIMS
from paircredit.analysis.key_to_door_claims import KEY_TO_DOOR_CLAIMS
from paircredit.analysis.tabular_claims import TABULAR_CLAIMS
from paircredit.analysis.verdicts import Claim, Status, Verdict
from paircredit.runs.read import Run

__all__ = ["CLAIMS", "Claim", "Status", "Verdict", "judge_all"]

CLAIMS: tuple[Claim, ...] = (
    *TABULAR_CLAIMS,
    *sorted((*KEY_TO_DOOR_CLAIMS, *BASELINE_CLAIMS), key=lambda claim: claim.id),
    *BSUITE_CLAIMS,
    *GAME_CLAIMS,
)


def judge_all(runs: Sequence[Run]) -> list[Verdict]:
    """A verdict for every claim, in order."""
    return [Verdict(claim.id, claim.statement, claim.where, *claim.judge(runs)) for claim in CLAIMS]
