"""The paper's claim about bsuite: the total regret of its methods beside that of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paircredit.results.curves import Curve
from paircredit.results.exhibits import LEAST_SEEDS, Claim, Order, Status
from paircredit.results.names import method_of, title
from paircredit.runs.read import Run
from paircredit.studies.bsuite.curves import (
    OTHER_SCALE,
    PAPER,
    PAPER_EPISODES,
    as_long_as_the_papers,
    by_domain,
    episodes,
    regret_difference,
    total_regret,
    totals,
)

OWN = ("meta-pwtd", "meta-pwr")
COMPARED = ("a2c", "a2c-rr", "rgm")
"""Methods, whatever is changed about them: what an entropy cost does for one side must be allowed to the other."""
NEEDED = ("a2c", *OWN)
"""Without these a domain is not judged; the claim is about all methods of the table that were run."""
EXCEPTION = "catch"
"""The domain in which the paper does not claim it."""
CHAIN = "discounting_chain"
YARDSTICK = 0.05
"""A2C's total regret should be within this share of the paper's: then the set-up is the paper's."""
NAMES = {domain: domain.replace("_", " ") for domain in PAPER}


def _lowest_regret(runs: Sequence[Run]) -> tuple[Status, str]:
    found = by_domain(runs)
    whole = {
        domain: {label: regrets for label, regrets in methods.items() if as_long_as_the_papers(regrets)}
        for domain, methods in found.items()
    }
    judged = {
        domain: methods
        for domain, methods in whole.items()
        if domain != EXCEPTION
        and all(label in methods and len(methods[label].seeds) >= LEAST_SEEDS for label in NEEDED)
    }
    if not judged:
        short = [
            episodes(found[d][label]) for d in found for label in NEEDED if label in found[d].keys() - whole[d].keys()
        ]
        if short:
            return "not judged", (
                f"The paper trains {PAPER_EPISODES[EXCEPTION]:,} episodes ({PAPER_EPISODES['cartpole']:,} in "
                f"cartpole), these runs {min(short):,}; total regrets of other lengths cannot be compared."
            )
        return "not judged", (
            f"Runs of {', '.join(title(label) for label in NEEDED)} on domains of bsuite other than catch, with at "
            f"least {LEAST_SEEDS} members each, made by `paircredit reproduce`, are needed; there are none."
        )
    orders = {domain: _order(methods) for domain, methods in judged.items()}
    missing = [domain for domain in PAPER if domain != EXCEPTION and domain not in judged]
    parts = [f"{NAMES[domain]}: {_numbers(methods)}{_REMARKS[orders[domain]]}" for domain, methods in judged.items()]
    parts += _yardstick(whole)
    if missing:
        parts.append(f"not judged: {', '.join(NAMES[domain] for domain in missing)}")
    text = "; ".join(parts) + "."
    if "contradicted" in orders.values() or orders.get(CHAIN, "holds") != "holds":
        return "fails", text
    return ("not judged" if missing else "holds"), text


_REMARKS: dict[Order, str] = {
    "holds": "",
    "tie": " (a tie with the best of the others)",
    "contradicted": " (the best of the others is lower)",
    "open": "",
}


def _order(methods: Mapping[str, Curve]) -> Order:
    """Whether the better of the paper's two methods has a lower total regret than the best of the others."""
    difference = regret_difference(_lowest(_of(OWN, methods)), _lowest(_of(COMPARED, methods)))
    if difference.low > 0:
        return "contradicted"
    return "holds" if difference.high < 0 else "tie"


def _of(names: Sequence[str], methods: Mapping[str, Curve]) -> list[Curve]:
    """What there is of these methods, changed or not, in this order; without what has too few members."""
    return [
        regrets
        for name in names
        for label, regrets in methods.items()
        if method_of(label) == name and len(regrets.seeds) >= LEAST_SEEDS
    ]


def _lowest(candidates: Sequence[Curve]) -> Curve:
    return min(candidates, key=lambda regrets: float(totals(regrets).mean()))


def _numbers(methods: Mapping[str, Curve]) -> str:
    shown = _of((*COMPARED, *OWN), methods)
    return ", ".join(f"{title(regrets.label)} {total_regret(regrets).text(',.0f')}" for regrets in shown)


def _yardstick(found: Mapping[str, Mapping[str, Curve]]) -> list[str]:
    """How far A2C is from the paper's numbers, where these can be compared."""
    ratios = {
        domain: float(totals(methods["a2c"]).mean()) / PAPER[domain]["a2c"]
        for domain, methods in found.items()
        if "a2c" in methods and domain not in OTHER_SCALE
    }
    near = [domain for domain, ratio in ratios.items() if abs(ratio - 1) <= YARDSTICK]
    if not ratios:
        return []
    return [
        f"A2C is within {100 * YARDSTICK:g} % of the paper's total regret in {len(near)} of {len(ratios)} domains"
        + "".join(
            f", {100 * (ratio - 1):+.0f} % in {NAMES[d]}".replace("-", "−")
            for d, ratio in ratios.items()
            if d not in near
        )
    ]


CLAIMS = (
    Claim(
        "B1",
        "On bsuite Meta-PWTD or Meta-PWR has the lowest total regret in all domains but catch; in the discounting "
        "chain it is 161 (Meta-PWR) against 3,554 (A2C).",
        "Experiments on Standard RL Benchmarks, table of total regrets",
        _lowest_regret,
    ),
)
