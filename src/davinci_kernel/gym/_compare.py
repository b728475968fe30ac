"""Compare a candidate's output with the reference's: structure exactly, numbers within a tolerance that knows the scale.

A fixed absolute tolerance lets zeros or a constant pass wherever the signal is smaller than it. Here the error allowed at
an element follows the output's own spread:

    allowed = tol * spread + min(tol * |ref|, tol * |ref - centre| + spread / 10) + 4 * eps * |ref|

with the centre (median) and the spread (RMS around it, the outermost 1 % clipped) of the reference. The middle term is
the usual relative one, but where the output is a small signal on a large offset it never reaches the signal. Where the
float64 oracle shows that torch's own error is larger than all this, four times that error is allowed, again at most a
tenth of the spread. An output without spread (all equal, or fewer than `_MIN_SPREAD` elements) is compared relative to its
magnitude.

An arg-extremum that differs where the values tie counts as a mismatch: the values are not part of the output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ._types import EvalSettings, Outcome

_CHUNK = 1 << 17
"""Elements compared at a time: some ten float64 temporaries of 1 MB, which stay in cache whatever the output's size."""
_SAMPLE = 4096
"""Elements that centre and spread are estimated from."""
_MIN_SPREAD = 8
"""Fewer elements than this have no spread worth the name."""
_CLIP = 0.99
_NOT_SIGNAL = 0.1
"""Share of the spread that no error may exceed by relative tolerance or oracle: a constant stays wrong."""
_ORACLE_FACTOR = 4.0
_ULPS = 4.0

_HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class TolerancePolicy:
    """Tolerances per dtype.

    Attributes:
        name: as in `EvalSettings.tolerance`.
        float64, float32, half, float8: tolerances by dtype.
        scaled: follow the output's spread; False is plain ``|error| <= tol + tol * |ref|``, torch.allclose's rule.
    """

    name: str = "default"
    float64: float = 1e-6
    float32: float = 1e-4
    half: float = 1e-2
    float8: float = 0.125
    scaled: bool = True

    @staticmethod
    def from_name(name: str) -> TolerancePolicy:
        """``default``; ``kernelgym``: 1e-2; ``kernelbench``: torch.allclose with its 1e-4 (half types 1e-2)."""
        if name == "kernelgym":
            return TolerancePolicy(name, float64=1e-2, float32=1e-2)
        if name == "kernelbench":
            return TolerancePolicy(name, float64=1e-4, scaled=False)
        if name == "default":
            return TolerancePolicy()
        raise ValueError(f"unknown tolerance policy {name!r}: use default, kernelgym or kernelbench")

    @staticmethod
    def from_settings(settings: EvalSettings) -> TolerancePolicy:
        """The named policy with the settings' single tolerances in place of its own."""
        single: dict[str, Any] = {str(name): value for name, value in settings.tolerance_overrides.items()}
        return replace(TolerancePolicy.from_name(settings.tolerance), **single)

    def of(self, dtype: torch.dtype) -> float:
        """The tolerance of a floating or complex dtype."""
        if dtype in (torch.float64, torch.complex128):
            return self.float64
        if dtype in (torch.float32, torch.complex64):
            return self.float32
        return self.half if dtype in _HALF else self.float8


@dataclass(frozen=True)
class Mismatch:
    """Why an output is refused; `stats` holds the error statistics of the differing tensor, in float64."""

    outcome: Outcome
    message: str
    stats: dict[str, Any] = field(default_factory=dict)


def compare_outputs(reference: Any, candidate: Any, policy: TolerancePolicy, oracle: Any = None) -> Mismatch | None:
    """Compare recursively over tensors, tuples, lists, dicts and scalars; None if the candidate's output is right.

    Types, shapes, dtypes and devices are exact, strides may differ; integers and bools are exact; NaN and infinities must
    sit where the reference has them.

    Args:
        reference: the reference's output.
        candidate: the candidate's.
        policy: tolerances.
        oracle: the reference's output computed in float64, if there is one.
    """
    return _compare(reference, candidate, policy, oracle, "output")


def _compare(reference: Any, candidate: Any, policy: TolerancePolicy, oracle: Any, path: str) -> Mismatch | None:
    if isinstance(reference, torch.Tensor):
        return _compare_tensor(reference, candidate, policy, oracle, path)
    if isinstance(reference, (list, tuple, dict)):
        return _compare_container(reference, candidate, policy, oracle, path)
    if type(candidate) is not type(reference):
        return _wrong_type(reference, candidate, path)
    if isinstance(reference, float):
        pair = torch.tensor([reference], dtype=torch.float64), torch.tensor([candidate], dtype=torch.float64)
        return _compare_floats(*pair, policy, policy.float32, None, path)
    if candidate != reference:
        return Mismatch(Outcome.WRONG_VALUE, f"{path}: expected {reference!r}, got {candidate!r}")
    return None


def _compare_container(
    reference: Any, candidate: Any, policy: TolerancePolicy, oracle: Any, path: str
) -> Mismatch | None:
    if type(candidate) is not type(reference):
        return _wrong_type(reference, candidate, path)
    if isinstance(reference, dict):
        if reference.keys() != candidate.keys():
            return Mismatch(
                Outcome.WRONG_SHAPE,
                f"{path}: expected the keys {sorted(map(str, reference))}, got {sorted(map(str, candidate))}",
            )
        keys: list[Any] = list(reference)
    else:
        if len(reference) != len(candidate):
            return Mismatch(Outcome.WRONG_SHAPE, f"{path}: expected {len(reference)} items, got {len(candidate)}")
        keys = list(range(len(reference)))
    same = type(oracle) is type(reference) and len(oracle) == len(reference)
    for key in keys:
        known = oracle[key] if same and (not isinstance(oracle, dict) or key in oracle) else None
        found = _compare(reference[key], candidate[key], policy, known, f"{path}[{key!r}]")
        if found:
            return found
    return None


def _compare_tensor(
    reference: torch.Tensor, candidate: Any, policy: TolerancePolicy, oracle: Any, path: str
) -> Mismatch | None:
    if type(candidate) is not torch.Tensor and type(candidate) is not type(reference):
        return _wrong_type(reference, candidate, path)
    for what, outcome, want, got in (
        ("shape", Outcome.WRONG_SHAPE, list(reference.shape), list(candidate.shape)),
        ("dtype", Outcome.WRONG_DTYPE, _plain(reference.dtype), _plain(candidate.dtype)),
        ("device", Outcome.WRONG_TYPE, reference.device.type, candidate.device.type),
    ):
        if want != got:
            return Mismatch(outcome, f"{path}: expected {what} {want}, got {got}")
    if not reference.numel():
        return None
    if not (reference.is_floating_point() or reference.is_complex()):
        return _compare_exact(reference, candidate, path)
    tolerance = policy.of(reference.dtype)
    reference, candidate = _real(reference.detach()), _real(candidate.detach())
    fits = isinstance(oracle, torch.Tensor) and _real(oracle).shape == reference.shape
    return _compare_floats(reference, candidate, policy, tolerance, _real(oracle.detach()) if fits else None, path)


def _compare_exact(reference: torch.Tensor, candidate: torch.Tensor, path: str) -> Mismatch | None:
    if torch.equal(reference, candidate):
        return None
    wrong = reference != candidate
    first = _first(wrong)
    message = f"{path}{first}: expected {reference[tuple(first)].item()}, got {candidate[tuple(first)].item()}"
    share = wrong.double().mean().item()
    return Mismatch(Outcome.WRONG_VALUE, f"{message}; {_percent(share)} of elements differ", {"wrong_share": share})


@dataclass(frozen=True)
class _Rule:
    """The allowed error: ``floor + min(relative * |ref|, relative * |ref - centre| + cap) + rounding * |ref|``."""

    centre: float
    floor: float
    relative: float
    cap: float
    rounding: float

    def allowed(self, reference: torch.Tensor) -> torch.Tensor:
        size = reference.abs()
        allowed = (reference - self.centre).abs().mul_(self.relative).add_(self.cap)
        torch.minimum(allowed, size * self.relative, out=allowed)
        return allowed.add_(size, alpha=self.rounding).add_(self.floor)


def _compare_floats(
    reference: torch.Tensor,
    candidate: torch.Tensor,
    policy: TolerancePolicy,
    tolerance: float,
    oracle: torch.Tensor | None,
    path: str,
) -> Mismatch | None:
    rule, spread = _rule(reference, policy, tolerance)
    if _surely_close(reference, candidate, rule.floor):
        return None
    if bool(torch.isnan(reference).all()):
        return Mismatch(Outcome.INVALID_REFERENCE, f"{path}: the reference's output is NaN everywhere")
    found = _first_wrong(reference, candidate, rule)
    if found is not None and oracle is not None and policy.scaled:
        own = _largest_error(reference, oracle)
        limit = _NOT_SIGNAL * spread if spread else math.inf
        floor = max(rule.floor, min(_ORACLE_FACTOR * own, limit))
        rule = _Rule(rule.centre, floor, rule.relative, rule.cap, rule.rounding)
        found = _first_wrong(reference, candidate, rule)
    return None if found is None else _describe(reference, candidate, rule, found, path)


def _rule(reference: torch.Tensor, policy: TolerancePolicy, tolerance: float) -> tuple[_Rule, float]:
    """The rule for a reference, and its spread (0 if it has none)."""
    if not policy.scaled:
        return _Rule(0.0, tolerance, tolerance, math.inf, 0.0), 0.0
    rounding = _ULPS * torch.finfo(reference.dtype).eps
    centre, spread = _centre_and_spread(reference)
    if spread == 0.0:
        return _Rule(0.0, tolerance * abs(centre), tolerance, math.inf, rounding), 0.0
    return _Rule(centre, tolerance * spread, tolerance, _NOT_SIGNAL * spread, rounding), spread


def _centre_and_spread(reference: torch.Tensor) -> tuple[float, float]:
    """Median of the finite elements and clipped RMS around it, from an evenly spaced sample.

    Where nearly all are equal the RMS over all elements is taken; without any spread the first number is the mean
    magnitude.
    """
    flat = reference.reshape(-1)
    stride = max(1, flat.numel() // _SAMPLE)
    stride += stride > 1 and stride % 2 == 0  # an even stride would visit few columns of a power-of-two shape
    sample = flat[::stride].double()
    sample = sample[torch.isfinite(sample)]
    if reference.numel() < _MIN_SPREAD or not sample.numel():
        return (sample.abs().mean().item() if sample.numel() else 0.0), 0.0
    centre = sample.median()
    deviation = (sample - centre).abs()
    clip = deviation.kthvalue(max(1, math.ceil(_CLIP * deviation.numel()))).values
    spread = deviation.clamp(max=clip).square().mean().sqrt().item()
    if spread == 0.0:
        total, count = 0.0, 0
        for (chunk,) in _chunks(reference):
            finite = chunk[torch.isfinite(chunk)]
            total += (finite - centre).square().sum().item()
            count += finite.numel()
        spread = math.sqrt(total / count)
    # Rounding noise on a constant is no signal.
    if spread <= _ULPS * torch.finfo(reference.dtype).eps * abs(centre.item()):
        return abs(centre.item()), 0.0
    return centre.item(), spread


def _surely_close(reference: torch.Tensor, candidate: torch.Tensor, floor: float) -> bool:
    """One pass in the tensors' own precision that says yes only if every error is below half of the least allowed."""
    if reference.dtype not in (torch.float32, torch.float64):
        return False
    largest = 0.0
    flats = (reference.reshape(-1), candidate.reshape(-1))
    for start in range(0, flats[0].numel(), _CHUNK):
        ours, theirs = (flat[start : start + _CHUNK] for flat in flats)
        largest = max(torch.sub(theirs, ours).abs_().max().item(), largest)
        if not largest <= floor / 2:
            return False
    return True


def _first_wrong(reference: torch.Tensor, candidate: torch.Tensor, rule: _Rule) -> int | None:
    """The flat index of the first element that is out of tolerance or not finite where it should be, or the reverse."""
    for offset, (ours, theirs) in _offset_chunks(reference, candidate):
        wrong = _wrong(ours, theirs, rule)
        if bool(wrong.any()):
            return offset + int(wrong.nonzero()[0])
    return None


def _wrong(ours: torch.Tensor, theirs: torch.Tensor, rule: _Rule) -> torch.Tensor:
    finite = torch.isfinite(ours)
    within = (theirs - ours).abs() <= rule.allowed(ours)
    special = (theirs == ours) | (torch.isnan(theirs) & torch.isnan(ours))
    return ~torch.where(finite, within, special)


def _largest_error(reference: torch.Tensor, oracle: torch.Tensor) -> float:
    """max |reference - oracle| where both are finite."""
    largest = 0.0
    for ours, exact in _chunks(reference, oracle):
        error = (ours - exact).abs()
        error = error[torch.isfinite(error)]
        if error.numel():
            largest = max(largest, error.max().item())
    return largest


def _describe(reference: torch.Tensor, candidate: torch.Tensor, rule: _Rule, first: int, path: str) -> Mismatch:
    """Message and statistics over all elements."""
    wrong = 0
    max_abs = max_rel = allowed = 0.0
    for offset, (ours, theirs) in _offset_chunks(reference, candidate):
        wrong += int(_wrong(ours, theirs, rule).sum())
        error = (theirs - ours).abs()
        finite = torch.isfinite(error)
        if bool(finite.any()):
            max_abs = max(max_abs, error[finite].max().item())
            relative = error[finite] / ours[finite].abs().clamp(min=torch.finfo(torch.float32).tiny)
            max_rel = max(max_rel, relative.max().item())
        if offset <= first < offset + ours.numel():
            allowed = rule.allowed(ours[first - offset]).item()
    index = _unravel(first, reference.shape)
    want, got = reference[tuple(index)].item(), candidate[tuple(index)].item()
    share = wrong / reference.numel()
    bound = f" (allowed error {allowed:.3g})" if math.isfinite(want) and math.isfinite(got) else ""
    message = (
        f"{path}{index}: expected {want:.7g}, got {got:.7g}{bound}; "
        f"max absolute error {max_abs:.3g}, max relative error {max_rel:.3g}, {_percent(share)} of elements wrong"
    )
    stats = {"max_abs": max_abs, "max_rel": max_rel, "wrong_share": share, "first_index": index, "floor": rule.floor}
    return Mismatch(Outcome.WRONG_VALUE, message, stats)


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    for _, chunk in _offset_chunks(*tensors):
        yield chunk


def _offset_chunks(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """Flat float64 pieces of tensors of one shape, with the position of each piece."""
    flats = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flats[0].numel(), _CHUNK):
        yield start, tuple(flat[start : start + _CHUNK].double() for flat in flats)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs in a last dimension."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _first(wrong: torch.Tensor) -> list[int]:
    return [int(position) for position in wrong.nonzero()[0]]


def _unravel(position: int, shape: torch.Size) -> list[int]:
    index = []
    for extent in reversed(shape):
        position, rest = divmod(position, extent)
        index.append(rest)
    return index[::-1]


def _wrong_type(reference: Any, candidate: Any, path: str) -> Mismatch:
    return Mismatch(Outcome.WRONG_TYPE, f"{path}: expected {_type_name(reference)}, got {_type_name(candidate)}")


def _type_name(value: Any) -> str:
    return "a tensor" if type(value) is torch.Tensor else type(value).__name__


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
