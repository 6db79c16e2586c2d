"""Meta-PWR and A2C on Key-to-Door as one would write them in PyTorch, to compare the library's speed with.

Everything is here: the environment in NumPy, 16 episodes side by side; the appendix's networks; A2C; Meta-PWR with a
differentiable Adam step inside and a double backward pass outside. Needs `torch` (2.11 or later) and `numpy`, and
nothing of paircredit, unless it is to be timed as well: `--ours` does both, on the same device, and prints the ratios.

    python -m tools.benchmarks.peer_torch --ours --device cuda --updates 8 --warmup 2 --seeds 10 --json peer.json
    python -m tools.benchmarks.peer_torch --method meta-pwr --device cuda --updates 50 --seeds 10 --json peer.json
    python -m tools.benchmarks.peer_torch --method a2c --device cpu --updates 5 --small
    python -m tools.benchmarks.peer_torch --check
    python -m tools.benchmarks.peer_torch --json peer.json --compare ours.json

Seeds run one after another, as they do with such a script; nothing is extrapolated. Times are medians over updates,
the device synchronised before each reading of the clock, warm-up updates left out. `--json` keeps one row per method,
device, seeds, size of network and use of `--compile`, and replaces a row that is measured again.

What `--json` writes, in {"rows": [...]}; beside them, with `--ours`, what `tools.bench` wrote, as "ours":

    method, device, small, seeds, updates, warmup     as asked for
    seconds_per_update        one seed, rollout + learning (+ metagradient); median over all seeds' updates
    seconds_per_update_all    all seeds one update further: the sum of each seed's median
    seconds_total             all that was timed of seeds × updates, end to end
    seconds_update_alone      learning (+ metagradient) on one fixed batch, one seed
    seconds_rollout_alone     16 episodes of 120 steps, one seed
    frames_per_second         16 × 120 / seconds_per_update
    peak_memory_bytes         allocated on the GPU; on a CPU the largest resident size of the process
    device_name, threads, compiled, torch             where it ran

What `--compare` reads, a list of rows or {"rows": [...]}, one per method and device:

    {"method": "meta-pwr",           # or "a2c"
     "members": 10,                  # seeds trained together
     "seconds_per_update": 0.05,     # all members one update further, rollout included
     "seconds_update_alone": 0.03,   # all members, on a fixed batch, no rollout; may be left out
     "device": "cuda"}               # or "cpu"

A ratio above 1 says that the library is faster. End to end, `seconds_per_update_all` of as many seeds is divided by
`seconds_per_update`; no such row, no ratio. The update alone is compared per member. Of a case measured with and
without `--compile`, the faster one counts; small networks do not.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F
except ModuleNotFoundError:
    sys.exit("peer_torch.py needs PyTorch, which is no dependency of the library: pip install torch.")

ENVIRONMENTS = 16
PHASES = (15, 90, 15)
ROWS, COLUMNS = 7, 11


class Sizes(NamedTuple):
    """Widths of the networks; the defaults are the paper's."""

    filters: tuple[int, int] = (16, 32)
    dense: tuple[int, int, int] = (512, 512, 256)
    pair: int = 256


SMALL = Sizes((8, 8), (64, 64, 64), 32)


class Settings(NamedTuple):
    """Hyperparameters; the paper's where it states them, else the library's choice."""

    learning_rate: float = 2e-4
    outer_learning_rate: float = 1e-4
    discount: float = 0.998
    a2c_lambda: float = 0.5
    outer_lambda: float = 0.9
    entropy_cost: float = 0.05
    value_cost: float = 0.5
    second_moment_decay: float = 0.999
    epsilon: float = 1e-8


PAPER = Settings()


def sized_room(height: int, width: int) -> np.ndarray:
    """A map that is True on the floor of a room in the middle of it."""
    floor = np.zeros((ROWS, COLUMNS), dtype=bool)
    top, left = (ROWS - height) // 2, (COLUMNS - width) // 2
    floor[top : top + height, left : left + width] = True
    return floor


class KeyToDoor:
    """Key-to-Door for many episodes in step: all change their phase at the same time."""

    MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
    ROOMS = (sized_room(5, 5), sized_room(5, 9), sized_room(3, 3))
    DOOR = (1, 5)  # in the upper wall of the last room
    WALL, FLOOR, AGENT = (0, 0, 0), (90, 90, 90), (255, 255, 255)
    ITEM = ((255, 220, 0), (220, 0, 0), (0, 0, 255))  # the colours of key, apple and door

    def __init__(
        self,
        number: int,
        seed: int,
        phases: tuple[int, int, int] = PHASES,
        apple_mean: float = 5.0,
        apple_variance: float = 25.0,
    ) -> None:
        self.number, self.rng = number, np.random.default_rng(seed)
        self.starts, self.horizon = np.cumsum((0, *phases[:2])), sum(phases)
        self.tau = apple_variance / apple_mean**2 + 1
        self.apple_reward = apple_mean * self.tau
        self.backgrounds = [np.where(room[..., None], self.FLOOR, self.WALL).astype(np.uint8) for room in self.ROOMS]
        self.everyone = np.arange(number)

    def reset(self) -> tuple[np.ndarray, np.ndarray]:
        """New episodes; returns the maps and whether the agents hold their key."""
        self.time = 0
        self.has_key = np.zeros(self.number, dtype=bool)
        self._enter(0)
        return self._observe()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One move; returns the maps, whether the agents hold their key, and the rewards."""
        target = self.position + self.MOVES[actions]
        row, column = target.T
        may_enter = self.ROOMS[self.phase][row, column]
        if self.phase == 2:
            may_enter = may_enter | (self.has_key & (target == self.DOOR).all(axis=1))
        self.position = np.where(may_enter[:, None], target, self.position)
        row, column = self.position.T
        touched = self.items[self.everyone, row, column]
        self.items[self.everyone, row, column] = False
        if self.phase == 0:
            self.has_key |= touched
            rewards = np.zeros(self.number, dtype=np.float32)
        elif self.phase == 1:
            pays = self.rng.random(self.number) * self.tau < 1
            rewards = np.where(touched & pays, self.apple_reward, 0.0).astype(np.float32)
        else:
            rewards = np.where(touched, 10.0, 0.0).astype(np.float32)
        self.time += 1
        if self.phase < 2 and self.time == self.starts[self.phase + 1]:
            self._enter(self.phase + 1)
        return *self._observe(), rewards

    def _enter(self, phase: int) -> None:
        self.phase = phase
        self.items = np.zeros((self.number, ROWS, COLUMNS), dtype=bool)
        if phase == 2:
            self.position = np.full((self.number, 2), (ROWS // 2, COLUMNS // 2))
            self.items[:, *self.DOOR] = True
            return
        cells = np.argwhere(self.ROOMS[phase])
        order = np.argsort(self.rng.random((self.number, len(cells))), axis=1)
        self.position = cells[order[:, 0]]
        count = 1 if phase == 0 else self.rng.integers(1, 20, size=(self.number, 1))
        chosen = np.broadcast_to(np.arange(len(cells) - 1) < count, (self.number, len(cells) - 1))
        who, which = np.nonzero(chosen)
        row, column = cells[order[who, which + 1]].T
        self.items[who, row, column] = True

    def _observe(self) -> tuple[np.ndarray, np.ndarray]:
        maps = np.broadcast_to(self.backgrounds[self.phase], (self.number, ROWS, COLUMNS, 3)).copy()
        maps[self.items] = self.ITEM[self.phase]
        maps[self.everyone, self.position[:, 0], self.position[:, 1]] = self.AGENT
        return maps, self.has_key


class Perception(nn.Module):
    """The appendix's standard perception module: a map and a bit become a vector."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        first, second, last = sizes.dense
        self.conv_1 = nn.Conv2d(3, sizes.filters[0], 3, padding="same")
        self.conv_2 = nn.Conv2d(sizes.filters[0], sizes.filters[1], 3, padding="same")
        self.dense_1 = nn.Linear(ROWS * COLUMNS * sizes.filters[1], first)
        self.dense_2 = nn.Linear(first + 1, second)
        self.dense_3 = nn.Linear(second, last)

    def forward(self, maps: Tensor, has_key: Tensor) -> Tensor:
        dtype = self.dense_1.weight.dtype
        x = maps.permute(0, 3, 1, 2).to(dtype) / 255
        x = F.relu(self.conv_2(F.relu(self.conv_1(x))))
        x = F.relu(self.dense_1(x.flatten(1)))
        x = torch.cat((x, has_key.to(dtype)[:, None]), dim=1)
        return F.relu(self.dense_3(F.relu(self.dense_2(x))))


class Network(nn.Module):
    """Perception and a linear head; also returns what the head saw."""

    def __init__(self, sizes: Sizes, outputs: int) -> None:
        super().__init__()
        self.perception = Perception(sizes)
        self.head = nn.Linear(sizes.dense[-1], outputs)

    def forward(self, maps: Tensor, has_key: Tensor) -> tuple[Tensor, Tensor]:
        features = self.perception(maps, has_key)
        return self.head(features), features


class PairWeights(nn.Module):
    """The meta-network η: a weight in (0, 1) for every pair of a decision and a later reward of one episode."""

    def __init__(self, sizes: Sizes, horizon: int) -> None:
        super().__init__()
        self.row = nn.Linear(sizes.dense[-1], sizes.pair)
        self.column = nn.Linear(sizes.dense[-1], sizes.pair)
        self.lag = nn.Linear(horizon, sizes.pair)
        self.scale = nn.Parameter(torch.ones(sizes.pair))
        self.shift = nn.Parameter(torch.zeros(sizes.pair))
        self.output = nn.Linear(sizes.pair, 1)
        with torch.no_grad():
            self.output.weight.mul_(0.01)
            self.output.bias.zero_()
        decision, reward = torch.triu_indices(horizon, horizon)
        self.register_buffer("decision", decision)  # i of each pair, from 0
        self.register_buffer("reward", reward)  # j − 1 of each pair, j from 1: also the index of the reward
        self.register_buffer("lags", math.sqrt(horizon) * torch.eye(horizon))

    def forward(self, features: Tensor) -> Tensor:
        """Features (time + 1, batch, channel) → weights (pair, batch)."""
        rows = (F.relu(self.row(features[:-1])) + 1).index_select(0, self.decision)
        columns = (F.relu(self.column(features[1:])) + 1).index_select(0, self.reward)
        lags = (self.lag(self.lags) + 1).index_select(0, self.reward - self.decision)
        fused = rows * columns * lags[:, None]
        pairs, batch, _ = fused.shape
        # Mean and deviation over the pairs of one episode: batch normalisation with (episode, channel) as channel.
        scale, shift = self.scale.repeat(batch), self.shift.repeat(batch)
        normal = F.batch_norm(fused.view(pairs, -1), None, None, scale, shift, training=True, eps=1e-5)
        return torch.sigmoid(self.output(F.relu(normal.view_as(fused))).squeeze(-1))

    def weighted_returns(self, weights: Tensor, rewards: Tensor) -> Tensor:
        """Σ_j w_ij R_j for every decision i; weights (pair, batch), rewards (time, batch)."""
        return torch.zeros_like(rewards).index_add(0, self.decision, weights * rewards[self.reward])


class Batch(NamedTuple):
    """Whole episodes, time first; one observation more than actions."""

    maps: Tensor
    has_key: Tensor
    actions: Tensor
    rewards: Tensor


@torch.no_grad()
def rollout(env: KeyToDoor, policy: Network, device: torch.device, dtype: torch.dtype = torch.float32) -> Batch:
    """Episodes by sampled actions."""
    time_steps, number = env.horizon, env.number
    all_maps = torch.empty((time_steps + 1, number, ROWS, COLUMNS, 3), dtype=torch.uint8, device=device)
    all_keys = torch.empty((time_steps + 1, number), dtype=torch.bool, device=device)
    all_actions = torch.empty((time_steps, number), dtype=torch.long, device=device)
    all_rewards = np.empty((time_steps, number), dtype=np.float32)
    maps, has_key = env.reset()
    for t in range(time_steps):
        all_maps[t].copy_(torch.from_numpy(maps))
        all_keys[t].copy_(torch.from_numpy(has_key))
        probabilities = policy(all_maps[t], all_keys[t])[0].softmax(-1)
        # A race of exponential clocks samples the categorical distribution without a transfer to the host.
        actions = (probabilities / torch.empty_like(probabilities).exponential_()).argmax(-1)
        all_actions[t] = actions
        maps, has_key, all_rewards[t] = env.step(actions.cpu().numpy())
    all_maps[-1].copy_(torch.from_numpy(maps))
    all_keys[-1].copy_(torch.from_numpy(has_key))
    return Batch(all_maps, all_keys, all_actions, torch.from_numpy(all_rewards).to(device, dtype))


def decay_matrix(horizon: int, decay: float, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Its product with TD errors (time, batch) gives λ-advantages, for episodes that all end at the horizon."""
    step = torch.arange(horizon, device=device)
    return (decay ** (step - step[:, None]).clamp(min=0).to(dtype)).triu()


def lambda_advantages(rewards: Tensor, values: Tensor, discount: float, decays: Tensor) -> Tensor:
    """Σ_k (γλ)^(k−t−1) δ_k; the value after the last step is 0."""
    following = torch.cat((values[1:], torch.zeros_like(values[:1])))
    return decays @ (rewards + discount * following - values)


def standardise(advantages: Tensor) -> Tensor:
    """To mean 0 and deviation 1 over the batch; no gradient passes through the two."""
    fixed = advantages.detach()
    return (advantages - fixed.mean()) / (fixed.std(unbiased=False) + 1e-8)


def policy_loss(logits: Tensor, actions: Tensor, advantages: Tensor, entropy_cost: float) -> Tensor:
    """What a policy descends: advantage-weighted log-probabilities and an entropy bonus."""
    log_probabilities = logits.log_softmax(-1)
    chosen = log_probabilities.gather(-1, actions.reshape(-1, 1)).squeeze(-1)
    loss = -(advantages.reshape(-1) * chosen).mean()
    if entropy_cost:
        loss = loss + entropy_cost * (log_probabilities.exp() * log_probabilities).sum(-1).mean()
    return loss


def adam(parameters: list[nn.Parameter], learning_rate: float, settings: Settings) -> torch.optim.Adam:
    """PyTorch's own Adam with the paper's settings."""
    betas = (0.0, settings.second_moment_decay)
    return torch.optim.Adam(parameters, learning_rate, betas=betas, eps=settings.epsilon, fused=True)


class A2C:
    """Advantage actor-critic with λ-advantages."""

    def __init__(
        self,
        sizes: Sizes,
        horizon: int,
        device: torch.device,
        settings: Settings = PAPER,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.settings = settings
        self.policy = Network(sizes, 4).to(device, dtype)
        self.value = Network(sizes, 1).to(device, dtype)
        self.optimiser = adam([*self.policy.parameters(), *self.value.parameters()], settings.learning_rate, settings)
        self.decays = decay_matrix(horizon, settings.discount * settings.a2c_lambda, device, dtype)

    def compile(self) -> None:
        """Let TorchDynamo compile what it can."""
        self.policy.compile()
        self.value.compile()

    def update(self, batch: Batch) -> None:
        """One step of policy and value."""
        maps, has_key = batch.maps[:-1].flatten(0, 1), batch.has_key[:-1].flatten()
        values = self.value(maps, has_key)[0].view_as(batch.rewards)
        advantages = lambda_advantages(batch.rewards, values.detach(), self.settings.discount, self.decays)
        logits, _ = self.policy(maps, has_key)
        loss = policy_loss(logits, batch.actions, standardise(advantages), self.settings.entropy_cost)
        loss = loss + self.settings.value_cost * F.mse_loss(values, advantages + values.detach())
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()


class MetaPWR:
    """Policy gradient with learned pairwise weights of rewards, the weights learned by metagradient."""

    def __init__(
        self,
        sizes: Sizes,
        horizon: int,
        device: torch.device,
        settings: Settings = PAPER,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.settings = settings
        self.policy = Network(sizes, 4).to(device, dtype)
        self.value = Network(sizes, 1).to(device, dtype)
        self.weighted_value = Network(sizes, 1).to(device, dtype)
        self.weights = PairWeights(sizes, horizon).to(device, dtype)
        self.value_optimiser = adam(
            [*self.value.parameters(), *self.weighted_value.parameters()], settings.learning_rate, settings
        )
        self.weights_optimiser = adam([*self.weights.parameters()], settings.outer_learning_rate, settings)
        self.decays = decay_matrix(horizon, settings.discount * settings.outer_lambda, device, dtype)
        self.second_moments = {name: torch.zeros_like(p) for name, p in self.policy.named_parameters()}
        self.steps = 0
        self.updated: dict[str, Tensor] | None = None  # θ' with its graph down to η

    def compile(self) -> None:
        """Let TorchDynamo compile what it can: not the policy, compiled code cannot be differentiated twice."""
        self.value.compile()
        self.weighted_value.compile()
        self.weights.compile()

    def update(self, batch: Batch) -> None:
        """The outer step that the last inner step still owes, now that its episodes are there; then an inner step."""
        maps, has_key = batch.maps.flatten(0, 1), batch.has_key.flatten()
        horizon = len(batch.rewards)
        values, features = self.value(maps, has_key)
        values = values.view(horizon + 1, -1)[:-1]
        features = features.detach().view(horizon + 1, batch.rewards.shape[1], -1)
        maps, has_key = batch.maps[:-1].flatten(0, 1), batch.has_key[:-1].flatten()

        regular = lambda_advantages(batch.rewards, values.detach(), self.settings.discount, self.decays)
        if self.updated is not None:
            self.outer_loss(self.updated, batch, standardise(regular)).backward(inputs=[*self.weights.parameters()])
            self.updated = None
            self.weights_optimiser.step()
            self.weights_optimiser.zero_grad(set_to_none=True)

        weighted_returns = self.weights.weighted_returns(self.weights(features), batch.rewards)
        baseline = self.weighted_value(maps, has_key)[0].view_as(batch.rewards)
        self.updated, self.second_moments = self.inner_step(batch, standardise(weighted_returns - baseline.detach()))
        self.steps += 1
        with torch.no_grad():
            for name, parameter in self.policy.named_parameters():
                parameter.copy_(self.updated[name])

        loss = F.mse_loss(values, regular + values.detach()) + F.mse_loss(baseline, weighted_returns.detach())
        self.value_optimiser.zero_grad(set_to_none=True)
        (self.settings.value_cost * loss).backward()
        self.value_optimiser.step()

    def inner_step(self, batch: Batch, advantages: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """θ' = Adam(θ, ∇_θ J_inner), differentiable in the advantages; also the new second moments, as constants."""
        # Copies, since the policy itself is overwritten while the graph of this step is still needed.
        start = {name: p.detach().clone().requires_grad_() for name, p in self.policy.named_parameters()}
        observations = (batch.maps[:-1].flatten(0, 1), batch.has_key[:-1].flatten())
        logits, _ = torch.func.functional_call(self.policy, start, observations)
        loss = policy_loss(logits, batch.actions, advantages, self.settings.entropy_cost)
        gradients = torch.autograd.grad(loss, [*start.values()], create_graph=True)
        decay = self.settings.second_moment_decay
        correction = 1 - decay ** (self.steps + 1)
        updated, moments = {}, {}
        for (name, parameter), gradient in zip(start.items(), gradients, strict=True):
            moment = decay * self.second_moments[name] + (1 - decay) * gradient.square()
            # The floor keeps the derivative of the root finite where a unit has never been active.
            root = (moment / correction).clamp_min(1e-30).sqrt()
            updated[name] = parameter.detach() - self.settings.learning_rate * gradient / (root + self.settings.epsilon)
            moments[name] = moment.detach()
        return updated, moments

    def outer_loss(self, updated: dict[str, Tensor], batch: Batch, advantages: Tensor) -> Tensor:
        """The regular policy-gradient loss of θ' on the episodes that it made."""
        observations = (batch.maps[:-1].flatten(0, 1), batch.has_key[:-1].flatten())
        logits, _ = torch.func.functional_call(self.policy, updated, observations)
        return policy_loss(logits, batch.actions, advantages, 0.0)


METHODS = {"a2c": A2C, "meta-pwr": MetaPWR}
PEER_FIELDS = {"method", "device", "small", "seeds", "seconds_per_update_all", "seconds_update_alone"}
OUR_FIELDS = {"method", "device", "members", "seconds_per_update"}


def seconds_of(work: Callable[[], object], times: int, device: torch.device) -> list[float]:
    """How long each of several calls took, the device idle at either end."""
    seconds = []
    for _ in range(times):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - began)
    return seconds


def measure(options: argparse.Namespace, method: str) -> dict:
    """Train all seeds one after another and time it; then time the parts of one update with the last of them."""
    device = torch.device(options.device)
    sizes = SMALL if options.small else Sizes()
    per_seed = []
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        env = KeyToDoor(ENVIRONMENTS, seed)
        learner = METHODS[method](sizes, env.horizon, device)
        if options.compile:
            learner.compile()

        def update(env: KeyToDoor = env, learner: A2C | MetaPWR = learner) -> None:
            learner.update(rollout(env, learner.policy, device))

        seconds_of(update, options.warmup, device)
        per_seed.append(seconds_of(update, options.updates, device))
    batch = rollout(env, learner.policy, device)
    alone = seconds_of(lambda: learner.update(batch), options.warmup + options.updates, device)[options.warmup :]
    acting = seconds_of(lambda: rollout(env, learner.policy, device), options.updates, device)
    one_update = statistics.median(second for seconds in per_seed for second in seconds)
    on_gpu = device.type == "cuda"
    return {
        "method": method,
        "device": options.device,
        "small": options.small,
        "seeds": options.seeds,
        "updates": options.updates,
        "warmup": options.warmup,
        "seconds_per_update": one_update,
        "seconds_per_update_all": sum(map(statistics.median, per_seed)),
        "seconds_total": sum(map(sum, per_seed)),
        "seconds_update_alone": statistics.median(alone),
        "seconds_rollout_alone": statistics.median(acting),
        "frames_per_second": ENVIRONMENTS * env.horizon / one_update,
        "peak_memory_bytes": torch.cuda.max_memory_allocated(device) if on_gpu else peak_resident_bytes(),
        "device_name": torch.cuda.get_device_name(device) if on_gpu else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "compiled": options.compile,
        "torch": torch.__version__,
    }


def peak_resident_bytes() -> int:
    """The largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def print_row(row: dict) -> None:
    """One measurement, for people."""
    size = "small" if row["small"] else "paper"
    print(
        f"{row['method']}, {size} networks, {row['seeds']} seed(s) one after another, {row['updates']} updates each, "
        f"{row['device']} ({row['device_name']}, torch {row['torch']}{', compiled' if row['compiled'] else ''})"
    )
    print(f"  end to end, one seed     {row['seconds_per_update']:10.5f} s per update")
    print(f"  end to end, all seeds    {row['seconds_per_update_all']:10.5f} s per update of all")
    print(f"  update alone, one seed   {row['seconds_update_alone']:10.5f} s")
    print(f"  rollout alone, one seed  {row['seconds_rollout_alone']:10.5f} s")
    print(f"  frames per second        {row['frames_per_second']:10,.0f}")
    print(f"  peak memory              {row['peak_memory_bytes'] / 2**20:10,.0f} MiB")


def read_rows(path: Path, needed: set[str]) -> list[dict]:
    """The rows of a JSON file, bare or under "rows", each with the fields needed."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} could not be read as JSON: {error}") from error
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SystemExit(f'{path} must hold a list of rows or {{"rows": [...]}}; see the top of {Path(__file__).name}.')
    for row in rows:
        if needed - set(row):
            raise SystemExit(f"{path}: a row lacks {', '.join(sorted(needed - set(row)))}: {json.dumps(row)}")
    return rows


def keep_row(path: Path, row: dict, ours: dict) -> None:
    """Add a measurement to a file in place of an older one of the same case; beside it, what the library said."""
    identity = ("method", "device", "seeds", "small", "compiled")
    rows = read_rows(path, set()) if path.exists() else []
    rows = [old for old in rows if any(old.get(field) != row[field] for field in identity)]
    beside = {"ours": ours} if ours else {}
    path.write_text(json.dumps({"rows": [*rows, row], **beside}, indent=1) + "\n")


def compare(peer_rows: list[dict], our_rows: list[dict]) -> None:
    """Print how many times faster the library is: end to end with as many seeds, and per member of an update alone."""
    print("method     device  members  end to end: peer  ours     ratio   alone, per member: peer  ours     ratio")
    for ours in our_rows:
        candidates = [
            row
            for row in peer_rows
            if row["method"] == ours["method"] and row["device"] == ours["device"] and not row["small"]
        ]
        whole, alone = "not measured with this many seeds", "not measured"
        same_seeds = [row for row in candidates if row["seeds"] == ours["members"]]
        if same_seeds:  # where compiled and not, the faster one
            peer = min(row["seconds_per_update_all"] for row in same_seeds)
            whole = f"{peer:16.5f}  {ours['seconds_per_update']:7.5f}  {peer / ours['seconds_per_update']:6.1f}"
        if candidates and ours.get("seconds_update_alone"):
            peer = min(row["seconds_update_alone"] for row in candidates)
            per_member = ours["seconds_update_alone"] / ours["members"]
            alone = f"{peer:23.5f}  {per_member:7.5f}  {peer / per_member:6.1f}"
        print(f"{ours['method']:9s}  {ours['device']:6s}  {ours['members']:7d}  {whole:33s}   {alone}")


def time_ours(options: argparse.Namespace, methods: list[str]) -> dict:
    """What the library says of itself on the same device, with as many members as the peer has seeds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ours.json"
        updates, repeats = (5, 10) if options.device == "cuda" else (1, min(options.updates, 10))
        words = ["--methods", *methods, "--members", options.seeds, "--updates", updates, "--repeats", repeats]
        command = [options.ours, "-m", "tools.bench", *map(str, words), "--json", str(file)]
        platform_of_jax = {} if options.device == "cuda" else {"JAX_PLATFORMS": "cpu"}
        done = subprocess.run(command, check=False, env={**os.environ, **platform_of_jax})
        if done.returncode:
            raise SystemExit(f"The library could not be timed with {options.ours}; what it said stands above.")
        rows, said = read_rows(file, OUR_FIELDS), json.loads(file.read_text())
    if any(row["device"] != options.device for row in rows):
        raise SystemExit(f"The library found no {options.device} to run on, only: {rows[0]['device']}.")
    return said


def check_metagradient(seed: int = 0) -> float:
    """The relative error of the metagradient against central differences, in double precision on a tiny network."""
    torch.manual_seed(seed)
    device, dtype = torch.device("cpu"), torch.float64
    settings = Settings(learning_rate=0.01)
    env = KeyToDoor(4, seed, phases=(2, 6, 2))
    learner = MetaPWR(Sizes((2, 3), (8, 8, 6), 5), env.horizon, device, settings, dtype)
    with torch.no_grad():
        learner.weights.output.weight.mul_(100)  # undo the small start, so that all parts of η matter
    for _ in range(3):  # the first step of Adam is a sign step, through which next to nothing passes
        learner.update(rollout(env, learner.policy, device, dtype))
    inner, outer = (rollout(env, learner.policy, device, dtype) for _ in range(2))
    inner = inner._replace(rewards=torch.randn(inner.rewards.shape, dtype=dtype))  # real ones may all be 0
    evaluated = standardise(torch.randn(outer.rewards.shape, dtype=dtype))
    maps, has_key = inner.maps.flatten(0, 1), inner.has_key.flatten()
    with torch.no_grad():
        features = learner.value(maps, has_key)[1].view(*inner.has_key.shape, -1)
        baseline = learner.weighted_value(maps, has_key)[0].view(inner.has_key.shape)[:-1]

    def raw_advantages() -> Tensor:
        return learner.weights.weighted_returns(learner.weights(features), inner.rewards) - baseline

    policy = {name: p.detach().clone() for name, p in learner.policy.named_parameters()}
    moments, steps = learner.second_moments, learner.steps
    learner.updated = None  # no outer step, which would move η
    learner.update(inner)
    parameters = [*learner.weights.parameters()]
    gradient = torch.autograd.grad(learner.outer_loss(learner.updated, outer, evaluated), parameters)

    learner.policy.load_state_dict(policy)
    learner.second_moments, learner.steps = moments, steps
    fixed = raw_advantages().detach()

    def objective() -> float:
        advantages = (raw_advantages().detach() - fixed.mean()) / (fixed.std(unbiased=False) + 1e-8)
        return learner.outer_loss(learner.inner_step(inner, advantages)[0], outer, evaluated).item()

    def difference(parameter: Tensor, index: int, nudge: float = 1e-5) -> float:
        entry, ends = parameter.data.view(-1), []
        kept = entry[index].item()
        for sign in (1, -1):
            entry[index] = kept + sign * nudge
            ends.append(objective())
        entry[index] = kept
        return (ends[0] - ends[1]) / (2 * nudge)

    numeric = torch.tensor([difference(p, index) for p in parameters for index in range(p.numel())], dtype=dtype)
    exact = torch.cat([part.reshape(-1) for part in gradient])
    return ((numeric - exact).norm() / numeric.norm()).item()


def check_adam(seed: int = 0) -> float:
    """The largest difference between our differentiable Adam and PyTorch's after three steps on the same losses."""
    torch.manual_seed(seed)
    device, dtype = torch.device("cpu"), torch.float64
    env = KeyToDoor(4, seed, phases=(2, 6, 2))
    learner = MetaPWR(Sizes((2, 3), (8, 8, 6), 5), env.horizon, device, dtype=dtype)
    other = Network(Sizes((2, 3), (8, 8, 6), 5), 4).to(dtype=dtype)
    other.load_state_dict(learner.policy.state_dict())
    optimiser = adam([*other.parameters()], learner.settings.learning_rate, learner.settings)
    for _ in range(3):
        batch = rollout(env, learner.policy, device, dtype)
        advantages = standardise(torch.randn(batch.rewards.shape, dtype=dtype))
        updated, learner.second_moments = learner.inner_step(batch, advantages)
        learner.steps += 1
        learner.policy.load_state_dict(updated)
        logits, _ = other(batch.maps[:-1].flatten(0, 1), batch.has_key[:-1].flatten())
        optimiser.zero_grad()
        policy_loss(logits, batch.actions, advantages, learner.settings.entropy_cost).backward()
        optimiser.step()
    pairs = zip(learner.policy.parameters(), other.parameters(), strict=True)
    return max((one - two).abs().max().item() for one, two in pairs)


def check_learning(method: str, updates: int = 500, seed: int = 0) -> tuple[float, float]:
    """Mean return of the first and of the last tenth of the updates on a shortened Key-to-Door, small networks."""
    torch.manual_seed(seed)
    device = torch.device("cpu")
    env = KeyToDoor(ENVIRONMENTS, seed, phases=(5, 15, 5), apple_variance=0.0)
    learner = METHODS[method](SMALL, env.horizon, device, Settings(learning_rate=2e-3))
    returns = []
    for _ in range(updates):
        batch = rollout(env, learner.policy, device)
        learner.update(batch)
        returns.append(batch.rewards.sum(0).mean().item())
    tenth = updates // 10
    return statistics.mean(returns[:tenth]), statistics.mean(returns[-tenth:])


def check() -> None:
    """Is this script right? Ends with status 1 if not."""
    error, drift = max(check_metagradient(seed) for seed in range(3)), check_adam()
    print(f"metagradient against finite differences: relative error {error:.1e} (must be below 1e-5)")
    print(f"inner Adam against torch.optim.Adam, three steps: largest difference {drift:.1e} (must be below 1e-10)")
    right = error < 1e-5 and drift < 1e-10
    for method in METHODS:
        before, after = check_learning(method)
        print(f"{method} on a shortened task: mean return {before:.1f} at first, {after:.1f} at last (must gain 1/3)")
        right = right and after > 4 / 3 * before
    if not right:
        raise SystemExit("The check failed.")


def main() -> None:
    """Check, measure, compare: whatever the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", choices=METHODS, help="measure this method")
    parser.add_argument(
        "--ours",
        nargs="?",
        const=sys.executable,
        metavar="PYTHON",
        help="time the library as well, with this Python or another one that has it; both methods, if none is named",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--updates", type=int, default=20, help="timed updates per seed")
    parser.add_argument("--warmup", type=int, default=5, help="updates per seed before the clock starts")
    parser.add_argument("--seeds", type=int, default=1, help="runs, one after another")
    parser.add_argument("--small", action="store_true", help="small networks, for a quick look on a CPU")
    parser.add_argument("--compile", action="store_true", help="use torch.compile where it can be used")
    parser.add_argument("--json", type=Path, help="keep the measurement in this file; read by --compare")
    parser.add_argument("--compare", type=Path, help="print ratios to the library's numbers in this file")
    parser.add_argument("--check", action="store_true", help="check the metagradient and that A2C and Meta-PWR learn")
    options = parser.parse_args()
    if min(options.updates, options.warmup, options.seeds) < 1:
        parser.error("--updates, --warmup and --seeds must be at least 1.")
    if not (options.check or options.method or options.compare or options.ours):
        parser.error("say what to do: --ours, --method, --check or --compare.")
    if options.ours and (options.small or options.compare):
        parser.error("--ours is about the paper's networks, and measured now: leave out --small and --compare.")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device is cuda, but this PyTorch sees no GPU.")
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    if options.check:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the checks' networks are too small to share
        check()
        torch.set_num_threads(threads)
    rows, methods = [], [options.method] if options.method else sorted(METHODS) if options.ours else []
    ours = time_ours(options, methods) if options.ours else {}
    for method in methods:
        rows.append(measure(options, method))
        print_row(rows[-1])
        if options.json:
            keep_row(options.json, rows[-1], ours)
    if options.ours:
        compare(rows, ours["rows"])
    if options.compare:
        if options.json:
            rows = read_rows(options.json, PEER_FIELDS)
        if not rows:
            parser.error("--compare needs the peer's numbers: --json with a file of them, or --method to measure now.")
        compare(rows, read_rows(options.compare, OUR_FIELDS))


if __name__ == "__main__":
    main()
