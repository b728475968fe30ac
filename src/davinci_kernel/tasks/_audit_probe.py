"""The audit of one task: can any tolerance tell a right output of its reference from a wrong one?

`probe` runs a reference on two seeds' inputs and returns findings. As a script it audits a file's rows, each in a
process of its own, and needs nothing but Python and torch:

    python _audit_probe.py TASKS.jsonl OUT.jsonl --device cuda --level 2

OUT.jsonl has a first line with the settings, then one line per finished task; the same command continues it.
The tolerance arithmetic equals `gym/_compare.py`'s, which a test holds; it is written twice since this file stands
alone.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import ctypes
import gc
import hashlib
import json
import linecache
import math
import os
import random
import resource
import selectors
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

FORMAT = 1
"""Of the findings' definitions: rows of another number do not go into one file."""
TIMEOUT_SECONDS = 300.0
_SAMPLE, _MIN_SPREAD, _CLIP, _NOT_SIGNAL, _ULPS = 4096, 8, 0.99, 0.1, 4.0  # as in gym/_compare.py
_NO_SIGNAL = 1e-5
"""A spread below this (of 1 and of the output's centre) may be rounding: only float64 can tell."""


# --- tolerance ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tolerance:
    """Tolerances by dtype; `scaled`: follow the output's spread, else ``|error| <= tol + tol * |ref|``."""

    float64: float
    float32: float
    half: float = 1e-2
    float8: float = 0.125
    scaled: bool = True

    def of(self, dtype: torch.dtype) -> float:
        """The tolerance of a floating dtype."""
        if dtype in (torch.float64, torch.float32):
            return self.float64 if dtype == torch.float64 else self.float32
        return self.half if dtype in (torch.float16, torch.bfloat16) else self.float8


TOLERANCES = {"default": Tolerance(1e-6, 1e-4), "kernelgym": Tolerance(1e-2, 1e-2)}
"""Policies of `TolerancePolicy.from_name` that follow the output's spread."""
PLAIN = {"kernelbench": Tolerance(1e-4, 1e-4, scaled=False), "plain_1e-2": Tolerance(1e-2, 1e-2, scaled=False)}
"""torch.allclose's rule, at KernelBench's 1e-4 and at 1e-2."""
_SAME = Tolerance(1e-6, 1e-6, 1e-6, 1e-6)


def accepts(
    reference: torch.Tensor,
    candidate: torch.Tensor | float,
    tolerance: Tolerance,
    scale: tuple[float, float] | None = None,
    error: float = math.inf,
) -> bool:
    """Whether a policy takes `candidate` (a tensor of the same shape and dtype, or one number everywhere) as right.

    Integers and bools are exact. No float64 oracle is consulted. What is known already saves passes: `scale`, the
    reference's `centre_and_spread`, and `error`, a bound on every element's error where all are finite.
    """
    if isinstance(candidate, torch.Tensor) and candidate.shape != reference.shape:
        return False
    if not reference.is_floating_point():
        return all(bool((ours == theirs).all()) for ours, theirs in _chunks(reference, candidate))
    scale = (scale or centre_and_spread(reference)) if tolerance.scaled else (0.0, 0.0)
    floor, allowed = allowed_error(reference.dtype, tolerance, scale)
    if error <= floor:
        return True
    for ours, theirs in _chunks(reference, candidate):
        if isinstance(theirs, torch.Tensor):
            if torch.equal(ours, theirs):
                continue
            theirs = theirs.double()
        if bool(_wrong(ours.double(), theirs, allowed).any()):
            return False
    return True


def allowed_error(
    dtype: torch.dtype, tolerance: Tolerance, scale: tuple[float, float]
) -> tuple[float, Callable[[torch.Tensor], torch.Tensor]]:
    """The error that is accepted everywhere, and that at elements (float64) of an output of this centre and spread."""
    tol, rounding = tolerance.of(dtype), _ULPS * torch.finfo(dtype).eps
    if not tolerance.scaled:
        return tol, lambda ref: tol + tol * ref.abs()
    centre, spread = scale
    if spread == 0.0:
        return tol * abs(centre), lambda ref: tol * abs(centre) + (tol + rounding) * ref.abs()
    cap = _NOT_SIGNAL * spread
    return (
        tol * spread,
        lambda ref: (
            tol * spread + torch.minimum(tol * ref.abs(), tol * (ref - centre).abs() + cap) + rounding * ref.abs()
        ),
    )


def centre_and_spread(reference: torch.Tensor) -> tuple[float, float]:
    """Median of a sample and clipped RMS around it; spread 0 and the mean magnitude where there is no spread."""
    flat = reference.reshape(-1)
    stride = max(1, flat.numel() // _SAMPLE)
    stride += stride > 1 and stride % 2 == 0
    sample = flat[::stride].double().cpu()
    sample = sample[torch.isfinite(sample)]
    if reference.numel() < _MIN_SPREAD or not sample.numel():
        return (sample.abs().mean().item() if sample.numel() else 0.0), 0.0
    centre = sample.median()
    deviation = (sample - centre).abs()
    clip = deviation.kthvalue(max(1, math.ceil(_CLIP * deviation.numel()))).values
    spread = deviation.clamp(max=clip).square().mean().sqrt().item()
    if spread == 0.0:
        total, count = 0.0, 0
        for (chunk,) in _doubles(reference):
            finite = chunk[torch.isfinite(chunk)]
            total += (finite - centre.item()).square().sum().item()
            count += finite.numel()
        spread = math.sqrt(total / count)
    if spread <= _ULPS * torch.finfo(reference.dtype).eps * abs(centre.item()):
        return abs(centre.item()), 0.0
    return centre.item(), spread


def _wrong(
    ours: torch.Tensor, theirs: torch.Tensor | float, allowed: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    theirs = torch.as_tensor(theirs, dtype=torch.float64, device=ours.device)
    special = (theirs == ours) | (torch.isnan(theirs) & torch.isnan(ours))
    return ~torch.where(torch.isfinite(ours), (theirs - ours).abs() <= allowed(ours), special)


def _chunks(*values: torch.Tensor | float) -> Iterator[list[Any]]:
    """Flat pieces of tensors of one shape; numbers stay whole."""
    first = next(value for value in values if isinstance(value, torch.Tensor))
    size = 1 << (17 if first.device.type == "cpu" else 24)
    flats = [value.reshape(-1) if isinstance(value, torch.Tensor) else value for value in values]
    for start in range(0, first.numel(), size):
        yield [flat[start : start + size] if isinstance(flat, torch.Tensor) else flat for flat in flats]


def _doubles(*values: torch.Tensor | float) -> Iterator[list[Any]]:
    for pieces in _chunks(*values):
        yield [piece.double() if isinstance(piece, torch.Tensor) else piece for piece in pieces]


# --- running a reference --------------------------------------------------------------------------------------------

Leaves = dict[str, torch.Tensor]
"""An output's tensors by path; numbers are tensors of one element, complex numbers pairs in a last dimension."""


class Reference:
    """A reference built from one seed. Every run starts from the same weights and state, plain attributes included."""

    def __init__(self, code: str, entry_point: str, seed: int, device: str):
        self.module, self.entry_point, self.seed, self.device = _execute(code), entry_point, seed, device
        self.model: Any = self._build()
        self.versions = _versions(self.model)
        self.inputs: tuple[Any, ...] = (None, [], [])
        self.begins: dict[int, list[Any]] = {}
        self.draws = False

    def _build(self) -> Any:
        _seed_all(self.seed, "init")
        init = self.module.get_init_inputs()
        _seed_all(self.seed, "weights")
        build = getattr(self.module, self.entry_point)
        model = build(**init) if isinstance(init, dict) else build(*init)
        return model.to(self.device) if isinstance(model, torch.nn.Module) else model

    def run(self, input_seed: int, forward_seed: int, double: bool = False) -> Leaves:
        """The output for a seed's inputs; sets `draws` when the forward took random numbers.

        `double`: in float64; the reference cannot run again.
        """
        inputs = self._inputs(input_seed)
        if double:
            self.inputs = (None, [], [])
            model = self._pristine()
            model = model.double() if isinstance(model, torch.nn.Module) else model
            inputs = _map(inputs, lambda t: t.double() if t.is_floating_point() else t)
        else:
            model = self._copy()
        _seed_all(forward_seed, "forward")
        before = _rng_state(self.device)
        output = model(*inputs)
        self.draws = _rng_state(self.device) != before
        leaves = dict(_leaves(output, "output"))
        if not leaves:
            raise TypeError(f"the output, {type(output).__name__}, holds no number")
        return leaves

    def _pristine(self) -> Any:
        """The model itself, which no run touches but for its parameters: built anew where one changed those."""
        if self.versions != _versions(self.model):
            self.model = None
            self.model = self._build()
            self.versions = _versions(self.model)
        return self.model

    def _copy(self) -> Any:
        """A copy of the model that shares its parameters, which may be gigabytes."""
        model = self._pristine()
        parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
        try:
            return copy.deepcopy(model, {id(parameter): parameter for parameter in parameters})
        except Exception:  # tensors of a graph, open handles
            return self._build()

    def _inputs(self, seed: int) -> list[Any]:
        """Inputs of a seed, made again where a run changed them in place."""
        held, inputs, versions = self.inputs
        if held != seed or versions != [tensor._version for tensor in _tensors(inputs)]:
            self.inputs = (None, [], [])
            held = inputs = None
            inputs = self._make_inputs(seed)
            self.inputs = (seed, inputs, [tensor._version for tensor in _tensors(inputs)])
            self.begins[seed] = [tensor.flatten()[:64].tolist() for tensor in _tensors(inputs)]
        return inputs

    def _make_inputs(self, seed: int) -> list[Any]:
        """Made on the device itself where the task's code allows that: gigabytes of them take long on a CPU."""
        if self.device != "cpu":
            try:
                _seed_all(seed, "inputs")
                with torch.device(self.device):
                    return _map(list(self.module.get_inputs()), lambda t: t.to(self.device))
            except torch.cuda.OutOfMemoryError:
                raise
            except Exception:  # code that names the CPU, or a generator of it
                gc.collect()
        _seed_all(seed, "inputs")
        return _map(list(self.module.get_inputs()), lambda t: t.to(self.device))

    def inputs_repeat(self) -> bool:
        """Whether all seeds so far gave inputs that begin alike: `get_inputs` may be fixed."""
        first, *others = self.begins.values()
        return all(begin == first for begin in others)

    def identity_names(self) -> list[str]:
        """Names of floating parameters and buffers that are all 0 or all 1."""
        if not isinstance(self.model, torch.nn.Module):
            return []
        named = [*self.model.named_parameters(), *self.model.named_buffers()]
        return [
            name
            for name, tensor in named
            if tensor.is_floating_point() and tensor.numel() and any(bool((tensor == value).all()) for value in (0, 1))
        ]


def _execute(code: str) -> types.ModuleType:
    """Run the source without a file, yet visible to `inspect`."""
    name = "<reference>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    module = types.ModuleType("reference")
    sys.modules["reference"] = module
    exec(compile(code, name, "exec"), vars(module))
    return module


def _seed_all(seed: int, stream: str) -> None:
    """Seed every generator. Streams differ: weights and inputs of one sequence of numbers would be correlated."""
    value = int.from_bytes(hashlib.sha256(f"{seed}/{stream}".encode()).digest()[:6], "big")
    torch.manual_seed(value)
    random.seed(value)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(value % 2**32)


def _versions(model: Any) -> list[int]:
    """Counters of changes in place to its parameters."""
    return [parameter._version for parameter in model.parameters()] if isinstance(model, torch.nn.Module) else []


def _rng_state(device: str) -> list[Any]:
    numpy = sys.modules.get("numpy")
    state: list[Any] = [torch.get_rng_state().numpy().tobytes() if numpy else torch.get_rng_state().tolist()]
    if device.startswith("cuda"):
        state.append(torch.cuda.get_rng_state(device).tolist())
    state += [random.getstate(), str(numpy.random.get_state(legacy=False)) if numpy else ""]
    return state


def _leaves(value: Any, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        yield path, torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    elif isinstance(value, (bool, int, float)):
        yield path, torch.tensor([value], dtype=torch.float32 if isinstance(value, float) else None)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}[{key!r}]")


def _map(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_map(item, change) for item in value)
    return {key: _map(item, change) for key, item in value.items()} if isinstance(value, dict) else value


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    _map(value, lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    return found


# --- findings -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Range:
    """Finite elements' least, greatest and mean; elements in all, and those that are not finite."""

    low: float
    high: float
    mean: float
    count: int
    bad: int

    def joined(self, other: _Range) -> _Range:
        good, theirs = self.count - self.bad, other.count - other.bad
        mean = (self.mean * good + other.mean * theirs) / max(1, good + theirs)
        low, high = min(self.low, other.low), max(self.high, other.high)
        return _Range(low, high, mean, self.count + other.count, self.bad + other.bad)

    @property
    def size(self) -> float:
        return max(abs(self.low), abs(self.high)) if self.count > self.bad else 0.0

    def text(self) -> str:
        return f"[{self.low:.4g}, {self.high:.4g}]"


def probe(code: str, entry_point: str = "Model", seeds: Sequence[int] = (0, 1), device: str = "cpu") -> dict[str, Any]:
    """Run a reference on the inputs of two seeds and say what no tolerance could referee.

    Two outputs are held at most, a float64 one among them. Whatever the reference raises is raised.

    Returns:
        ``findings``, a list of {finding, tolerance, reason}, and ``figures`` of the output.
    """
    first, second = seeds
    if device.startswith("cuda"):
        torch.backends.cudnn.allow_tf32 = False
    with torch.no_grad():
        reference = Reference(code, entry_point, first, device)
        ours = reference.run(first, first)
        findings = _repeats(reference, ours, first, second)
        theirs = reference.run(second, first)
        figures: dict[str, Any] = {}
        if {path: t.shape for path, t in ours.items()} == {path: t.shape for path, t in theirs.items()}:
            found = _signal(ours, theirs, figures)
            if not any(each["finding"] in ("constant_output", "non_finite") for each in found):
                means = {path: _range(tensor).mean for path, tensor in theirs.items()}
                del theirs
                found += _rounding(reference, ours, means, first, figures)
            findings += found
        if reference.inputs_repeat():
            figures["inputs"] = "both seeds' inputs begin with the same numbers"
        if names := reference.identity_names():
            findings.append(_finding("identity_parameters", f"{len(names)} all 0 or all 1: {', '.join(names)}"))
    elements = sum(tensor.numel() for tensor in ours.values())
    return {"findings": findings, "figures": {"elements": elements, **figures}}


def _finding(finding: str, reason: str, tolerance: str | None = None) -> dict[str, Any]:
    return {"finding": finding, "tolerance": tolerance, "reason": reason}


def _repeats(reference: Reference, ours: Leaves, seed: int, other_seed: int) -> list[dict[str, Any]]:
    """Same inputs, weights and state: with the same RNG seed, and with another where the forward draws."""
    draws, default = reference.draws, TOLERANCES["default"]
    tests = [("nondeterministic", seed, "the same RNG seed")]
    tests += [("random_output", other_seed, "another RNG seed in the forward")] if draws else []
    found = []
    for name, forward_seed, what in tests:
        again = reference.run(seed, forward_seed)
        if not _all_accepted(ours, again, default):
            reason = f"same inputs and weights, {what}: outputs differ by up to {_largest_difference(ours, again):.3g}"
            found.append(_finding(name, reason))
        del again
    return found


class _Pair:
    """Two inputs' outputs of the same paths and shapes, with what is known of them."""

    def __init__(self, ours: Leaves, theirs: Leaves, ranges: dict[str, _Range], difference: float):
        self.sides, self.ranges, self.difference = (ours, theirs), ranges, difference
        self.scales = [
            {path: centre_and_spread(tensor) for path, tensor in side.items() if tensor.is_floating_point()}
            for side in self.sides
        ]

    def accepts_constant(self, values: dict[str, float], tolerance: Tolerance) -> bool:
        """Whether each path's number passes for both outputs."""
        for side, scales in zip(self.sides, self.scales, strict=True):
            for path, tensor in side.items():
                r, value = self.ranges[path], values[path]
                error = math.inf if r.bad else max(abs(r.low - value), abs(r.high - value))
                if not accepts(tensor, value, tolerance, scales.get(path), error):
                    return False
        return True

    def accepts_each_other(self, tolerance: Tolerance) -> bool:
        """Whether each output passes for the other."""
        for here, there in ((0, 1), (1, 0)):
            for path, tensor in self.sides[here].items():
                scale = self.scales[here].get(path)
                if not accepts(tensor, self.sides[there][path], tolerance, scale, self.difference):
                    return False
        return True


def _signal(ours: Leaves, theirs: Leaves, figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Whether two inputs' outputs carry a signal above each tolerance."""
    ranges = {path: _range(ours[path]).joined(_range(theirs[path])) for path in ours}
    count, bad = sum(r.count for r in ranges.values()), sum(r.bad for r in ranges.values())
    if not count:
        raise ValueError("the output has no elements")
    found = [_finding("non_finite", f"{bad} of {count} elements of two outputs are NaN or infinite")] if bad else []
    largest = max(r.size for r in ranges.values())
    span = ", ".join(r.text() for r in list(ranges.values())[:3])
    difference = _largest_difference(ours, theirs)
    figures |= {"low": min(r.low for r in ranges.values()), "high": max(r.high for r in ranges.values())}
    figures |= {"difference": difference if math.isfinite(difference) else None}
    if not bad and largest == 0:
        found.append(_finding("zero_output", f"all {count} elements of two inputs' outputs are 0"))
    if not bad and all(r.high - r.low <= _ULPS * _epsilon(ours[path]) * r.size for path, r in ranges.items()):
        found.append(_finding("constant_output", f"all {count} elements of two inputs' outputs lie in {span}"))
    same = f"two inputs' outputs differ by at most {difference:.3g}, their elements are in {span}"
    pair = _Pair(ours, theirs, ranges, math.inf if bad else difference)
    if pair.accepts_each_other(_SAME):
        found.append(_finding("input_independent", same))
    midranges = {path: _representable((r.low + r.high) / 2, ours[path]) for path, r in ranges.items()}
    means = {path: _representable(r.mean, ours[path]) for path, r in ranges.items()}
    for name, tolerance in (TOLERANCES | PLAIN).items():
        passes = {
            "accepts_zeros": pair.accepts_constant(dict.fromkeys(ours, 0.0), tolerance),
            "accepts_constant": any(pair.accepts_constant(values, tolerance) for values in (midranges, means)),
            "accepts_other_output": pair.accepts_each_other(tolerance),
        }
        reasons = {
            "accepts_zeros": f"zeros pass: two inputs' outputs are at most {largest:.3g} in magnitude",
            "accepts_constant": f"a constant passes: two inputs' outputs lie in {span}",
            "accepts_other_output": same,
        }
        if tolerance.scaled:
            found += [_finding(kind, reasons[kind], name) for kind, passed in passes.items() if passed]
        elif any(passes.values()):
            kinds = ", ".join(kind.removeprefix("accepts_") for kind, passed in passes.items() if passed)
            reason = f"passes |error| <= tol + tol * |ref|: {kinds}; outputs in {span}, difference {difference:.3g}"
            found.append(_finding("weak_signal", reason, name))
    return found


def _rounding(
    reference: Reference, ours: Leaves, other_means: dict[str, float], seed: int, figures: dict[str, Any]
) -> list[dict[str, Any]]:
    """A constant under float32's rounding: only where the spread is small, and last, since it spoils the reference."""
    floats = {path: tensor for path, tensor in ours.items() if tensor.is_floating_point()}
    if len(floats) < len(ours) or not all(_tiny(*centre_and_spread(tensor)) for tensor in floats.values()):
        return []
    try:
        exact = reference.run(seed, seed, double=True)
    except Exception as error:
        figures["float64"] = f"not run: {_message(error)}"
        return []
    if exact.keys() != floats.keys():
        return []
    parts = []
    for path, tensor in floats.items():
        own, true, noise = _spreads(tensor, exact[path])
        moved = abs(_range(tensor).mean - other_means[path])
        if not (noise >= 0.5 * own and true <= 0.5 * own and moved <= 4 * own):
            return []
        parts.append(f"RMS around its mean {own:.3g} in float32, {true:.3g} in float64")
    return [_finding("constant_output", "the variation is float32 rounding: " + "; ".join(parts[:3]))]


def _tiny(centre: float, spread: float) -> bool:
    return 0 < (spread or abs(centre)) <= _NO_SIGNAL * max(1.0, abs(centre))


def _spreads(single: torch.Tensor, double: torch.Tensor) -> tuple[float, float, float]:
    """RMS of an output around its mean, of its float64 twin around its mean, and of their difference."""
    means = _range(single).mean, _range(double).mean
    sums = [0.0, 0.0, 0.0]
    for ours, exact in _doubles(single, double):
        for index, values in enumerate((ours - means[0], exact - means[1], ours - exact)):
            sums[index] += values.square().sum().item()
    own, true, noise = (math.sqrt(total / single.numel()) for total in sums)
    return (own, true, noise) if single.numel() > 1 else (max(own, abs(means[0])), abs(means[1]), noise)


def _all_accepted(ours: Leaves, theirs: Leaves, tolerance: Tolerance) -> bool:
    if ours.keys() != theirs.keys():
        return False
    return all(accepts(tensor, theirs[path], tolerance) for path, tensor in ours.items())


def _range(tensor: torch.Tensor) -> _Range:
    low, high, total, bad = math.inf, -math.inf, 0.0, 0
    for (chunk,) in _doubles(tensor):
        finite = chunk if math.isfinite(chunk.sum().item()) else chunk[torch.isfinite(chunk)]
        bad += chunk.numel() - finite.numel()
        if finite.numel():
            low, high = min(low, finite.min().item()), max(high, finite.max().item())
            total += finite.sum().item()
    good = tensor.numel() - bad
    return _Range(low, high, total / good, tensor.numel(), bad) if good else _Range(0.0, 0.0, 0.0, tensor.numel(), bad)


def _largest_difference(ours: Leaves, theirs: Leaves) -> float:
    """Over elements where both are finite; infinite where paths or shapes differ."""
    largest = 0.0
    for path, tensor in ours.items():
        if path not in theirs or theirs[path].shape != tensor.shape:
            return math.inf
        for mine, other in _doubles(tensor, theirs[path]):
            error = (mine - other).abs()
            error = error[torch.isfinite(error)]
            largest = max(largest, error.max().item()) if error.numel() else largest
    return largest


def _epsilon(tensor: torch.Tensor) -> float:
    return torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 0.0


def _representable(value: float, tensor: torch.Tensor) -> float:
    if tensor.is_floating_point():
        return torch.tensor(value, dtype=tensor.dtype).item()
    return float(round(value))


def _message(error: BaseException) -> str:
    """The error's type and first line."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()[:300]}" if lines else type(error).__name__


# --- many tasks, each in a process of its own -----------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Of one task: wall-clock seconds, and GiB of the process's memory (the host's, not the device's; 0: unlimited)."""

    timeout: float = TIMEOUT_SECONDS
    memory: float = 0.0


class AuditFileError(ValueError):
    """A results file that cannot be continued; one line that names it."""


def settings_of(seed: int, device: str) -> dict[str, Any]:
    """What all rows of one file have in common; its first line. The device's index is not part of it."""
    return {"audit": FORMAT, "seed": seed, "device": device.partition(":")[0]}


def task_key(row: dict[str, Any]) -> tuple[str, str]:
    """Id and hash (`Task.content_hash`) of a task's row, in our layout or KernelBench's."""
    identity = row.get("task_id") or f"kernelbench/{row.get('level')}/{row.get('problem_id')}"
    text = f"{row.get('entry_point') or 'Model'}\0{row['code']}"
    return identity, hashlib.sha256(text.encode()).hexdigest()[:16]


def read_results(path: Path, settings: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """The rows of a results file and the bytes that they take; a cut-off last line is not among them.

    Raises:
        AuditFileError: not such a file, of other settings, or unreadable.
    """
    try:
        data = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise AuditFileError(f"{path}: {error.strerror}") from None
    whole = data[: data.rfind(b"\n") + 1]
    rows = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise AuditFileError(f"{path}:{number}: not a line of an audit; give another --out") from None
    if rows:
        found = rows.pop(0)
        if not isinstance(found, dict) or "audit" not in found:
            raise AuditFileError(f"{path}: not an audit's results; give another --out")
        for name, value in settings.items():
            if found.get(name) != value:
                raise AuditFileError(
                    f"{path}: has {name} {found.get(name)}, this run has {name} {value}; give another --out"
                )
    elif data and not json.dumps(settings).encode().startswith(data):
        raise AuditFileError(f"{path}: not an audit's results; give another --out")
    return rows, len(whole)


def unfinished(
    tasks: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]], limits: Limits
) -> list[dict[str, Any]]:
    """Tasks without a result; those that failed under lower limits count as such."""
    done = set()
    for row in results:
        failed = any(found["finding"] == "failed" for found in row["findings"])
        raised = _above(limits.timeout, row["limits"]["timeout"]) or _above(limits.memory, row["limits"]["memory"])
        if not (failed and raised):
            done.add((row["task_id"], row["content_hash"]))
    return [task for task in tasks if task_key(task) not in done]


def _above(limit: float, earlier: float) -> bool:
    return (limit or math.inf) > (earlier or math.inf)


def audit_all(
    tasks: Sequence[dict[str, Any]], out: Path, *, seed: int, device: str, limits: Limits, workers: int = 1
) -> Iterator[dict[str, Any]]:
    """Audit tasks and append each result to `out` as it comes; yields the new ones."""
    settings = settings_of(seed, device)
    results, size = read_results(out, settings)
    todo = unfinished(tasks, results, limits)
    with out.open("ab") as file:
        file.truncate(size)
        if not size:
            file.write(json.dumps(settings).encode() + b"\n")
        for row in _in_processes(todo, seed, device, limits, workers):
            file.write(json.dumps(row).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            yield row


@dataclass
class _Child:
    task: dict[str, Any]
    pid: int
    pipe: int
    started: float
    data: bytes = b""


def _in_processes(
    tasks: Sequence[dict[str, Any]], seed: int, device: str, limits: Limits, workers: int
) -> Iterator[dict[str, Any]]:
    """Fork one process per task, `workers` at a time. This one runs no parallel operator, so that forks are safe."""
    waiting, running = list(reversed(tasks)), dict[int, _Child]()
    threads = max(1, torch.get_num_threads() // workers)
    selector = selectors.DefaultSelector()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                child = _start(waiting.pop(), seed, device, limits, threads)
                running[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)
            first_end = min(child.started for child in running.values()) + limits.timeout
            ready = [key.fd for key, _ in selector.select(max(0.0, first_end - time.monotonic()))]
            for child in list(running.values()):
                piece = os.read(child.pipe, 1 << 16) if child.pipe in ready else None
                child.data += piece or b""
                late = time.monotonic() - child.started >= limits.timeout
                if piece == b"" or (late and not piece):
                    selector.unregister(child.pipe)
                    del running[child.pipe]
                    yield _end(child, limits, late and piece is None)
    finally:
        for child in running.values():
            _reap(child, 0.0)


def _start(task: dict[str, Any], seed: int, device: str, limits: Limits, threads: int) -> _Child:
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            die_with_parent(parent)
            _confine(limits.memory)
            torch.set_num_threads(threads)
            answer = _audited(task, seed, device)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(json.dumps(answer).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    return _Child(task, pid, reader, time.monotonic())


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the process `parent` ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _confine(memory: float) -> None:
    """Silence the task's prints, limit memory, be the first to go when the host runs out of it, leave no core file."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        size = int(memory * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _audited(task: dict[str, Any], seed: int, device: str) -> dict[str, Any]:
    """`probe`'s answer, or its error as the finding `failed`."""
    try:
        return probe(task["code"], task.get("entry_point") or "Model", (seed, seed + 1), device)
    except MemoryError as error:
        kind, message = "memory", _message(error)
    except BaseException as error:
        out = isinstance(error, torch.cuda.OutOfMemoryError) or "allocate memory" in str(error)
        kind, message = "memory" if out else "error", _message(error)
    return _failed(kind, message)


def _failed(kind: str, message: str) -> dict[str, Any]:
    return {"findings": [_finding("failed", f"{kind}: {message}")], "figures": {}}


def _end(child: _Child, limits: Limits, late: bool) -> dict[str, Any]:
    """The result row of a process that closed its pipe, or is out of time."""
    status = _reap(child, 0.0 if late else 10.0)
    try:
        answer = json.loads(child.data)
    except ValueError:
        if late:
            answer = _failed("timeout", f"not done after {limits.timeout:g} s")
        elif os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            answer = _failed("memory", "the process was killed (SIGKILL): the host ran out of memory")
        else:
            answer = _failed("error", f"the process died with status {status}")
    identity, digest = task_key(child.task)
    return {
        "task_id": identity,
        "name": child.task.get("name") or identity,
        "level": child.task.get("level"),
        "content_hash": digest,
        **answer,
        "seconds": round(time.monotonic() - child.started, 2),
        "limits": {"timeout": limits.timeout, "memory": limits.memory},
    }


def _reap(child: _Child, grace: float) -> int:
    """The status of a process that has `grace` seconds to end; what it started ends with it."""
    os.close(child.pipe)
    deadline = time.monotonic() + grace
    done, status = os.waitpid(child.pid, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.005)
        done, status = os.waitpid(child.pid, os.WNOHANG)
    for end in (os.killpg, os.kill)[: 1 if done else 2]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(child.pid, signal.SIGKILL)
    return status if done else os.waitpid(child.pid, 0)[1]


def main() -> int:
    """The command line; prints one JSON line per finished task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tasks", type=Path, help="JSON lines: KernelBench's rows or ours")
    parser.add_argument("out", type=Path, help="JSON lines of results; continued where they exist")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--level", type=int, action="append", help="keep this level; may be repeated")
    parser.add_argument("--only", action="append", help="keep this task id; may be repeated")
    parser.add_argument("--limit", type=int, default=0, help="first so many rows; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, help="seconds per task")
    parser.add_argument("--memory", type=float, default=0.0, help="GiB of host memory per task; 0: no limit")
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parent:
        die_with_parent(options.parent)
    try:
        rows = [json.loads(line) for line in options.tasks.read_text(encoding="utf-8").split("\n") if line.strip()]
        if not all(isinstance(row, dict) and isinstance(row.get("code"), str) for row in rows):
            raise ValueError(f"{options.tasks}: expected an object with a text `code` per line")
        rows = [row for row in rows if not options.level or row.get("level") in options.level]
        rows = [row for row in rows if not options.only or task_key(row)[0] in options.only]
        limits = Limits(options.timeout, options.memory)
        common = {"seed": options.seed, "device": options.device, "limits": limits, "workers": options.workers}
        for row in audit_all(rows[: options.limit or None], options.out, **common):
            print(json.dumps(row), flush=True)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
