"""What is run on Key-to-Door: the paper's central experiment, its searches, and what it leaves open."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from paircredit.envs.registry import make_environment
from paircredit.experiments.spec import Recipe, TrainingSpec, Variant
from paircredit.methods.presets import preset_environment

METHODS, SEARCH, SEARCHES, SWITCHES = (
    "key-to-door",
    "key-to-door-search",
    "key-to-door-searches",
    "key-to-door-switches",
)
"""Roles of runs: all methods; A2C over λ and learning rates; the others over theirs; one open choice at a time."""
EPISODES = 16
"""Episodes per update (paper, KtD appendix)."""


class Setting(NamedTuple):
    """What apples pay, on average and in variance, and how often the agent slips."""

    mean: float
    variance: float
    slip: float

    @classmethod
    def of(cls, values: Iterable[Any]) -> Setting:
        """From recorded numbers, which may have been through single precision."""
        return cls(*(round(float(value), 6) for value in values))

    def text(self) -> str:
        """For readers; slips are named where there are some."""
        slips = f", {100 * self.slip:g} % random actions" if self.slip else ""
        return f"μ = {self.mean:g}, σ² = {self.variance:g}{slips}"


MEANS, VARIANCES = (1.0, 5.0, 10.0), (0.0, 25.0, 100.0)
CENTRAL, HARD = Setting(5.0, 25.0, 0.0), Setting(10.0, 100.0, 0.0)
"""Where the paper tuned all methods, and of which it shows weights; and the noisiest of its settings."""
NINE = tuple(Setting(mean, variance, 0.0) for mean in MEANS for variance in VARIANCES)
LAMBDAS = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.5, 0.0)
LEARNING_RATES = (1e-3, 2e-4, 5e-5, 1e-5)
"""The paper's search for A2C."""
EASY_TO_SEE = preset_environment("small", "key-to-door")
SHORTENED = {"key_steps": 6, "apple_steps": 8, "door_steps": 6, **EASY_TO_SEE}
"""For runs that only show that everything works."""
OWN = ("a2c", "h-pwr", "meta-pwr", "meta-pwtd")
BASELINES = ("meta-lambda", "rgm", "a2c-rr", "tvt", "synthetic-returns")
RANKED = ("h-pwr", "meta-pwr", "a2c")
"""What the paper's ranking is about, from the fastest to the slowest."""
ENOUGH = {"a2c": 20_000_000, "h-pwr": 12_000_000, "meta-pwr": 19_200_000, "meta-pwtd": 20_000_000}
"""Frames for a curve to be flat at the centre, or 20 million."""


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much of an experiment: frames per member (or a share of `ENOUGH`), and seeds per setting and variant.

    All settings share the `env_settings`; of the variants that are tried, this many are made, or all.
    """

    frames: int
    seeds: int
    preset: str = "default"
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Sequence[Setting] = (CENTRAL,)
    variants: int | None = None
    share: float | None = None


def small(frames: int, seeds: int, **more: Any) -> Scale:
    """A scale for a laptop: short episodes and small networks."""
    return Scale(frames, seeds, "small", SHORTENED, **more)


def training(
    name: str,
    label: str,
    scale: Scale,
    *,
    role: str = METHODS,
    settings: Sequence[Setting] | None = None,
    method_settings: Mapping[str, Any] | None = None,
    tried: Sequence[Variant] = (),
) -> TrainingSpec:
    """One method on several settings (else the scale's) in one program; what is tried is tried on every one."""
    frames = scale.frames if scale.share is None else round(scale.share * ENOUGH[label])
    steps = make_environment("key-to-door", **scale.env_settings).spec.horizon
    members = [
        Variant(
            labels={**setting._asdict(), **(variant.labels or {})},
            env_settings={**scale.env_settings, **setting._asdict(), **(variant.env_settings or {})},
            method_settings=dict(variant.method_settings or {}),
        )
        for setting in settings or scale.settings
        for variant in list(tried)[: scale.variants] or [Variant()]
    ]
    return TrainingSpec(
        name=name,
        env="key-to-door",
        method=label,
        updates=max(1, round(frames / (EPISODES * steps))),
        seeds=tuple(range(scale.seeds)),
        env_settings=dict(scale.env_settings),
        method_settings=dict(method_settings or {}),
        preset=scale.preset,
        variants=tuple(members),
        tags={"role": role, "label": label},
    )


def _each(prefix: str, methods: Sequence[str], scale: Scale) -> list[TrainingSpec]:
    return [training(f"{prefix}-{method}", method, scale) for method in methods]


def _everywhere(scale: Scale) -> list[TrainingSpec]:
    """A run per method, and one more where actions slip."""
    return [
        training(
            f"settings-{method}" if slip == 0 else f"settings-slips-{method}",
            method,
            scale,
            settings=[setting for setting in scale.settings if setting.slip == slip],
        )
        for slip in dict.fromkeys(setting.slip for setting in scale.settings)
        for method in ("a2c", "h-pwr", "meta-pwr")
    ]


class Search(NamedTuple):
    """Values of λ and of learning rates, and how much of each combination."""

    lambdas: Sequence[float]
    rates: Sequence[float]
    scale: Scale


def _search(search: Search) -> list[TrainingSpec]:
    tried = [
        Variant(
            labels={"lambda": lambda_, "learning_rate": rate},
            method_settings={"lambda_": lambda_, "inner.learning_rate": rate, "inner.value_learning_rate": rate},
        )
        for rate in search.rates
        for lambda_ in search.lambdas
    ]
    return [training("search-a2c", "a2c", search.scale, role=SEARCH, tried=tried)]


TRACED = {
    "default": Variant(),
    "outer λ = 1": Variant(method_settings={"outer.lambda_": 1.0}),
    "outer λ = 0.5": Variant(method_settings={"outer.lambda_": 0.5}),
    "outer learning rate 2e-5": Variant(method_settings={"outer.learning_rate": 2e-5}),
    "outer learning rate 3e-4": Variant(method_settings={"outer.learning_rate": 3e-4}),
    "dark palette": Variant(env_settings={"palette": "dark"}),
}
"""Switches of Meta-PWR that are tried within one program."""
STATIC: dict[str, dict[str, Any]] = {
    "scalar lag": {"network.lag": "scalar"},
    "one-hot lag": {"network.lag": "one-hot"},
    "second moment detached": {"inner.differentiate": "numerator"},
    "statistics differentiated": {"inner.differentiate_statistics": True},
    "float32": {"network.precision": "float32"},
}
"""Those that need a program of their own."""


def _switches(scale: Scale) -> list[TrainingSpec]:
    """Meta-PWR's open choices, one at a time."""
    named = [dataclasses.replace(variant, labels={"switch": label}) for label, variant in TRACED.items()]
    runs: list[tuple[dict[str, Any], list[Variant]]] = [({}, named)]
    runs += [(settings, [Variant({"switch": label})]) for label, settings in STATIC.items()]
    return [
        training(f"switch{number}-meta-pwr", "meta-pwr", scale, role=SWITCHES, method_settings=static, tried=tried)
        for number, (static, tried) in enumerate(runs)
    ]


READINGS: dict[str, dict[str, Any]] = {
    "scalar-lag": {},
    "sinusoidal-lag": {"network.lag": "sinusoidal"},
    "one-hot-lag": {"network.lag": "one-hot"},
    "statistics-held-fixed": {"inner.differentiate_statistics": False},
    "moment-detached": {"inner.differentiate": "numerator"},
    "walled-room": {"env.layout": "walled"},
}
"""What the paper's hyperparameters may be read with; the first is the plainest. A program each."""
BESIDE = {
    "": {},
    ", outer λ 0.9": {"outer.lambda_": 0.9},
    ", outer rate 1e-4": {"outer.learning_rate": 1e-4},
    ", outer λ 0.9 and rate 1e-4": {"outer.lambda_": 0.9, "outer.learning_rate": 1e-4},
}
"""Tried within each of these programs."""


def _readings(scale: Scale) -> list[TrainingSpec]:
    """Meta-PWR with the printed hyperparameters, read in other ways."""
    runs = []
    for name, settings in READINGS.items():
        env = {key.removeprefix("env."): value for key, value in settings.items() if key.startswith("env.")}
        method = {key: value for key, value in settings.items() if not key.startswith("env.")}
        own = dataclasses.replace(scale, env_settings={**scale.env_settings, **env})
        words = name.replace("-", " ").replace("one hot", "one-hot")
        tried = [Variant({"switch": words + more}, method_settings=beside) for more, beside in BESIDE.items()]
        run = f"reading-{name}-meta-pwr"
        runs.append(training(run, "meta-pwr", own, role=SWITCHES, method_settings=method, tried=tried))
    return runs


Grid = Mapping[str, Sequence[float]]
"""Values of settings; all combinations are tried."""
SEARCHED: Mapping[str, Grid] = {
    "meta-lambda": {"outer.learning_rate": (1e-4, 2e-5, 5e-6, 1e-6)},
    "rgm": {"outer.learning_rate": (1e-4, 1e-5, 1e-6, 1e-7)},
    "tvt": {"threshold": (1.0, 2.0), "inner.learning_rate": (1e-3, 2e-4, 5e-5, 1e-5)},
    "a2c-rr": {
        "inner.discount": (0.92, 1.0),
        "lambda_": (1.0, 0.95, 0.5),
        "prediction.auxiliary": (0.0, 0.5),
        "mix": (0.5, 1.0),
    },
}
"""What the paper searched for each method (KtD appendix); the search for A2C is an experiment of its own."""
NAMES = {
    "outer.learning_rate": "outer learning rate",
    "inner.learning_rate": "learning rate",
    "threshold": "threshold",
    "inner.discount": "γ",
    "lambda_": "λ",
    "prediction.auxiliary": "auxiliary",
    "mix": "mix",
}


def combinations(grid: Grid) -> list[Variant]:
    """A variant for every combination of a grid, labelled in words."""
    variants = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        text = ", ".join(f"{NAMES[name]} {value:g}" for name, value in settings.items())
        variants.append(Variant({"tried": text}, method_settings=settings))
    return variants


_AT_ONE = {"smoke": small(0, 2, share=1e-4), "short": Scale(0, 5, share=0.5), "paper": Scale(0, 10, share=1.0)}
_SLIPPERY = tuple(setting._replace(slip=0.1) for setting in NINE)
EXPERIMENTS = (
    Recipe(
        "key-to-door",
        "all methods in the nine settings of Key-to-Door, deterministic and with slips",
        {
            "smoke": small(4 * EPISODES * 20, 2, settings=(CENTRAL, CENTRAL._replace(slip=0.1))),
            "short": Scale(2_000_000, 3, "small", EASY_TO_SEE),
            "paper": Scale(50_000_000, 10, settings=(*NINE, *_SLIPPERY)),
        },
        lambda scale: _each("key-to-door", OWN, scale),
    ),
    Recipe(
        "key-to-door-baselines",
        "Meta-λ(s), RGM, A2C-RR, TVT and Synthetic Returns in Key-to-Door",
        {"smoke": small(2 * 320, 1), "short": small(960_000, 2), "paper": Scale(10_080_000, 5)},
        lambda scale: _each("baseline", BASELINES, scale),
    ),
    Recipe(
        "key-to-door-central",
        "all methods in Key-to-Door where the paper tuned them (minutes on a GPU)",
        _AT_ONE,
        lambda scale: _each("central", OWN, scale),
    ),
    Recipe(
        "key-to-door-hard",
        "A2C and Meta-PWR in the noisiest Key-to-Door",
        {name: dataclasses.replace(scale, settings=(HARD,)) for name, scale in _AT_ONE.items()},
        lambda scale: _each("hard", ("a2c", "meta-pwr"), scale),
    ),
    Recipe(
        "key-to-door-printed",
        "the paper's hyperparameters in their plainest reading, at the paper's length, where the paper tuned them",
        {
            "smoke": small(1_280, 2),
            "short": Scale(20_000_000, 5, "paper"),
            "paper": Scale(50_000_000, 10, "paper"),
        },
        lambda scale: _each("printed", OWN, scale),
    ),
    Recipe(
        "key-to-door-readings",
        "which reading of the paper makes its hyperparameters give its curves of Meta-PWR",
        {
            "smoke": small(1_280, 1, variants=2),
            "short": Scale(9_600_000, 3, "paper"),
            "paper": Scale(20_000_000, 5, "paper"),
        },
        _readings,
    ),
    Recipe(
        "key-to-door-search",
        "λ and learning rate of A2C in Key-to-Door",
        {
            "smoke": Search((1.0, 0.5), (2e-4,), small(1_280, 1)),
            "short": Search(LAMBDAS, (2e-4,), Scale(ENOUGH["a2c"], 5)),
            "paper": Search(LAMBDAS, LEARNING_RATES, Scale(50_000_000, 3)),
        },
        _search,
    ),
    Recipe(
        "key-to-door-searches",
        "the other methods' hyperparameters in Key-to-Door, as the appendix searched",
        {"smoke": small(2 * 320, 1, variants=2), "short": small(960_000, 1), "paper": Scale(50_000_000, 3)},
        lambda scale: [
            training(f"searches-{method}", method, scale, role=SEARCHES, tried=combinations(grid))
            for method, grid in SEARCHED.items()
        ],
    ),
    Recipe(
        "key-to-door-settings",
        "A2C, H-PWR and Meta-PWR in the nine settings, for the order of methods alone",
        {
            "smoke": small(4 * EPISODES * 20, 2, settings=(*NINE[:2], *_SLIPPERY[:2])),
            "short": Scale(12_000_000, 5, settings=NINE),
            "paper": Scale(19_200_000, 10, settings=(*NINE, *_SLIPPERY)),
        },
        _everywhere,
    ),
    Recipe(
        "key-to-door-switches",
        "what the paper leaves open about Meta-PWR in Key-to-Door",
        {"smoke": small(1_280, 1), "short": Scale(9_600_000, 5), "paper": Scale(20_000_000, 10)},
        _switches,
    ),
)
"""960,000 frames of shortened episodes are 3,000 updates; 10,080,000 of whole ones are 5,250."""
