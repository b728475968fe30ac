"""The judge's view of a reference: input sets, expected outputs and weights, made in the reference's own process.

A reference lives as long as its judge keeps it, over many candidates of one task; expected outputs of its input sets are
computed once, and each evaluation adds a set from a fresh secret seed.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from davinci_kernel.tasks import Task

from ._device import DeviceName
from ._processes import ForkClient, WorkerFailed, WorkerGone, WorkerProcess, wait_idle
from ._tensors import BadDescription, Region, nbytes_of, restore, tensor_nodes
from ._types import EvalSettings, Outcome

MAX_WARM_BYTES = 64 << 20
"""Largest block that both sides' allocators are warmed with (eight of them)."""


class Rejection(Exception):
    """The evaluation is over with this outcome."""

    def __init__(self, outcome: Outcome, message: str, hack: str | None = None, stats: dict[str, Any] | None = None):
        super().__init__(message)
        self.outcome, self.message, self.hack, self.stats = outcome, message, hack, stats or {}


@dataclass
class Expected:
    """What the reference returned for an input set, and how."""

    value: Any
    description: dict[str, Any]
    size: int
    finite: bool
    all_nan: bool
    mutates: list[int]
    aliases_input: bool


@dataclass
class InputSet:
    """One set of inputs in sealed memory; `forward_seed` seeds the RNG of both sides' forwards."""

    name: str
    region: Region
    description: dict[str, Any]
    forward_seed: int
    floats: bool
    expected: Expected | None = None
    oracle: Any = None


@dataclass
class Weights:
    """A description of init inputs or weights over a sealed region."""

    region: Region
    weights: dict[str, Any]
    init: dict[str, Any] = field(default_factory=dict)


class Reference:
    """One task's reference in its process."""

    def __init__(
        self,
        client: ForkClient,
        task: Task,
        scratch: str,
        settings: EvalSettings,
        threads: int,
        device: DeviceName = "cpu",
    ):
        self.timeout = settings.run_timeout
        self.device = device
        self.process: WorkerProcess = client.fork("reference", scratch, memory_bytes=0, threads=threads, device=device)
        self.init_seed = self._seed(settings, 3000)
        reply, fds = self._call(
            "import", code=task.code, class_name=task.entry_point, seed=self.init_seed, baseline=settings.baseline
        )
        self.weights = Weights(Region(fds[0], reply["size"], writable=False), reply["weights"], reply["init"])
        self.bank: deque[InputSet] = deque()
        self.variants: dict[str, InputSet | None] = {}
        self.random_weights: tuple[Weights, InputSet] | None = None
        self._count = 0
        first = self.make_set(self._seed(settings, 0))
        self.output_bytes = self.expected(first).size
        self.output_sizes = [nbytes_of(node) for node in tensor_nodes(self.expected(first).description)]
        if self.expected(first).all_nan:
            raise Rejection(Outcome.INVALID_REFERENCE, "the reference's output is NaN everywhere")
        self.set_bytes = first.region.size + self.output_bytes
        self.bank.append(first)
        self.warm_bytes = min(self.output_bytes, MAX_WARM_BYTES)
        self._call("warm", bytes=self.warm_bytes)

    @property
    def held_bytes(self) -> int:
        """Shared memory and outputs that it keeps between evaluations, about."""
        return self.set_bytes * (len(self.bank) + len(self.variants))

    def trial_sets(self, settings: EvalSettings) -> Iterator[InputSet]:
        """The input sets of an evaluation's trials: this reference's recent ones first, then one of a seed never used.

        Most wrong candidates fail at a recent one, whose expected output is known already. With a fixed seed the sets
        are always the same.
        """
        fresh = settings.seed is None
        older = settings.num_correct_trials - fresh
        while len(self.bank) < older:
            self.bank.append(self.make_set(self._seed(settings, len(self.bank))))
        yield from list(self.bank)[:older]
        if fresh:
            self.bank.appendleft(self.make_set(self._seed(settings, 0)))
            while len(self.bank) > settings.num_correct_trials:
                self._drop(self.bank.pop())
            yield self.bank[0]

    def variant(self, transform: str, settings: EvalSettings) -> InputSet | None:
        """The input set of a changed distribution; None where it does not apply or the reference is not finite."""
        if transform not in self.variants:
            candidate = self.make_set(self._seed(settings, 1000 + len(self.variants)), transform)
            try:
                usable = candidate.floats and self.expected(candidate).finite
            except Rejection:
                usable = False
            if not usable:
                self._drop(candidate)
            self.variants[transform] = candidate if usable else None
        return self.variants[transform]

    def randomised(self, settings: EvalSettings) -> tuple[Weights, InputSet] | None:
        """Weights whose constant parameters were randomised, with an input set; None where there are none."""
        if "weights" not in self.variants:
            self.variants["weights"] = None
            reply, fds = self._call("randomise", seed=self._seed(settings, 2000))
            weights = Weights(Region(fds[0], reply["size"], writable=False), reply["weights"])
            if reply["changed"]:
                chosen = self.make_set(self._seed(settings, 2001))
                try:
                    if self.expected(chosen).finite:
                        self.random_weights = weights, chosen
                except Rejection:
                    pass
            self._call("randomise", seed=None)
        return self.random_weights

    def make_set(self, seed: int, transform: str = "") -> InputSet:
        self._count += 1
        name = f"set{self._count}"
        reply, fds = self._call("inputs", name=name, seed=seed, transform=transform)
        region = Region(fds[0], reply["size"], writable=False)
        return InputSet(name, region, reply["description"], (seed * 31 + 7) % (1 << 48), reply["floats"])

    def expected(self, chosen: InputSet) -> Expected:
        """The reference's output for a set; computed at the first request."""
        if chosen.expected is None:
            reply, fds = self._call("outputs", name=chosen.name, seed=chosen.forward_seed)
            chosen.expected = self._read(reply, fds)
        return chosen.expected

    def last_output(self, chosen: InputSet) -> Any:
        """The output of the reference's last timed call."""
        reply, fds = self._call("take", name=chosen.name)
        return self._read(reply, fds).value

    def load(self, chosen: InputSet, fields: dict[str, Any]) -> None:
        """Load a set, patched by ``fields``, for a timed call."""
        self._call("load", name=chosen.name, **fields)

    def run(self, seed: int) -> dict[str, Any]:
        """One timed call, of the baseline."""
        return self._call("run", seed=seed, timed=True)[0]

    def works(self) -> bool:
        """Whether its process lives and its device computes."""
        if self.process.alive:
            try:
                self.process.call("probe", self.timeout)
            except (WorkerFailed, WorkerGone):
                self.process.end()
        return self.process.alive

    def settle(self) -> None:
        """Wait until its OpenMP threads sleep."""
        wait_idle(self.process)

    def oracle(self, chosen: InputSet, *, reload: bool = True) -> Any | None:
        """The float64 output of a set (of the inputs loaded now without ``reload``).

        None where the reference does not run in float64.
        """
        if reload and chosen.oracle is not None:
            return chosen.oracle
        name = chosen.name if reload else None
        try:
            reply, fds = self.process.call_with_fds("oracle", self.timeout, name=name, seed=chosen.forward_seed)
        except WorkerFailed:
            return None
        region = Region(fds[0], reply["size"], writable=False)
        value = restore(reply["description"], region)
        region.close()
        if reload:
            chosen.oracle = value
        return value

    def close(self) -> None:
        self.process.end()
        for chosen in [*self.bank, *self.variants.values()]:
            if chosen is not None:
                chosen.region.close()
        self.weights.region.close()

    def _drop(self, chosen: InputSet) -> None:
        self._call("unmap", name=chosen.name)
        chosen.region.close()

    def _seed(self, settings: EvalSettings, index: int) -> int:
        return secrets.randbits(48) if settings.seed is None else (settings.seed * 1_000_003 + index) % (1 << 48)

    def _read(self, reply: dict[str, Any], fds: list[int]) -> Expected:
        region = Region(fds[0], reply["size"], writable=False)
        try:
            value = restore(reply["description"], region)
        except BadDescription as error:
            raise Rejection(Outcome.INVALID_REFERENCE, f"the reference's output: {error}") from None
        finally:
            region.close()
        facts = {name: reply[name] for name in ("description", "size", "finite", "all_nan", "mutates", "aliases_input")}
        return Expected(value, **facts)

    def _call(self, op: str, **fields: Any) -> tuple[dict[str, Any], list[int]]:
        try:
            return self.process.call_with_fds(op, self.timeout, **fields)
        except WorkerFailed as error:
            raise Rejection(Outcome.INVALID_REFERENCE, f"the reference failed: {error}") from None
        except WorkerGone as error:
            raise Rejection(Outcome.INVALID_REFERENCE, f"the reference did not finish: {error.reason}") from None
