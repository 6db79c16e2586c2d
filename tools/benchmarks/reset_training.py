"""How long does reset training take, compilation included? Prints seconds and ratios to the reference times.

Every case runs in a fresh process, as a user's command does; nothing is cached between them. The reference is what a
plain prototype needed on 2 cores: 3 s for 1,000 outer updates at depth 8, 15 s for 1,500 at depth 16, compilation
included.

    python -m tools.benchmarks.reset_training [--repeats N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

CASES = (  # depth, outer updates, seeds, method, seconds of the reference for one seed
    (8, 1_000, 1, "meta-pwr", 3.0),
    (8, 1_000, 5, "meta-pwr", 3.0),
    (8, 1_000, 1, "meta-pwtd", 3.0),
    (16, 1_500, 1, "meta-pwr", 15.0),
    (16, 1_500, 5, "meta-pwr", 15.0),
)


def one_case(depth: int, updates: int, seeds: int, method_name: str) -> None:
    """Train once in this process and print the seconds as JSON."""
    began = time.perf_counter()
    import jax

    from paircredit.envs import make_environment
    from paircredit.methods import make_method
    from paircredit.training import Plan, train

    imported = time.perf_counter()
    first_chunk: list[float] = []
    env, method = make_environment("dag", depth=depth), make_method(method_name)
    state = train(
        [method] * seeds,
        [env] * seeds,
        list(range(seeds)),
        Plan("reset", updates // 10),
        updates,
        on_chunk=lambda chunk: first_chunk.append(time.perf_counter()) if not first_chunk else None,
    )
    jax.block_until_ready(state.learner.weights.parameters.eta)
    ended = time.perf_counter()
    per_chunk = (ended - first_chunk[0]) / 9
    seconds = {
        "total": ended - began,
        "import": imported - began,
        "compile": first_chunk[0] - imported - per_chunk,
        "run": ended - first_chunk[0] + per_chunk,
    }
    print(json.dumps(seconds))


def main() -> None:
    """Run all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        depth, updates, seeds = (int(word) for word in options.case[:3])
        one_case(depth, updates, seeds, options.case[3])
        return
    print("depth  updates  seeds  method     seconds  import  compile     run  ratio to reference  ratio to one seed")
    rows, one_seed = [], {}
    for depth, updates, seeds, method, reference in CASES:
        words = [str(depth), str(updates), str(seeds), method]
        times = [
            json.loads(
                subprocess.run(
                    [sys.executable, __file__, "--case", *words], check=True, capture_output=True, text=True
                ).stdout
            )
            for _ in range(options.repeats)
        ]
        median = {part: statistics.median(each[part] for each in times) for part in times[0]}
        one_seed.setdefault((depth, updates, method), median["total"])
        row = {"depth": depth, "updates": updates, "seeds": seeds, "method": method, **median}
        row |= {
            "ratio_to_reference": median["total"] / reference,
            "ratio_to_one_seed": median["total"] / one_seed[depth, updates, method],
        }
        rows.append(row)
        print(
            f"{depth:5d}  {updates:7d}  {seeds:5d}  {method:9s} {median['total']:8.2f} {median['import']:7.2f} "
            f"{median['compile']:8.2f} {median['run']:7.2f}  {row['ratio_to_reference']:18.2f}  "
            f"{row['ratio_to_one_seed']:17.2f}",
            flush=True,
        )
    if options.json:
        from paircredit.runs.manifest import provenance  # here, so that no case starts with anything imported

        numbers = {"provenance": provenance(), "repeats": options.repeats, "rows": rows}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
