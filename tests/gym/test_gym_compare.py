"""The comparison policy on hand-made outputs."""

from __future__ import annotations

import math

import pytest
import torch

from davinci_kernel.gym import EvalSettings, Outcome
from davinci_kernel.gym._compare import TolerancePolicy, compare_outputs

DEFAULT = TolerancePolicy.from_name("default")


def outcome(reference: object, candidate: object, policy: TolerancePolicy = DEFAULT, oracle: object = None) -> str:
    mismatch = compare_outputs(reference, candidate, policy, oracle)
    return "CORRECT" if mismatch is None else mismatch.outcome.value


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        (torch.ones(3), torch.ones(3), "CORRECT"),
        (torch.ones(()), torch.ones(1), "WRONG_SHAPE"),
        (torch.ones(2, 3), torch.ones(3, 2), "WRONG_SHAPE"),
        (torch.ones(3), torch.ones(3).half(), "WRONG_DTYPE"),
        (torch.ones(3), torch.ones(3, device="meta"), "WRONG_TYPE"),
        (torch.ones(3), [1.0, 1.0, 1.0], "WRONG_TYPE"),
        (torch.ones(3), torch.ones(3).as_subclass(type("Own", (torch.Tensor,), {})), "WRONG_TYPE"),
        ((torch.ones(1), 2), (torch.ones(1), 2), "CORRECT"),
        ((torch.ones(1), 2), [torch.ones(1), 2], "WRONG_TYPE"),
        ((torch.ones(1), 2), (torch.ones(1),), "WRONG_SHAPE"),
        ({"a": [torch.ones(1)]}, {"a": [torch.ones(1)]}, "CORRECT"),
        ({"a": 1}, {"b": 1}, "WRONG_SHAPE"),
        (2, 3, "WRONG_VALUE"),
        (2, 2.0, "WRONG_TYPE"),
        (1, True, "WRONG_TYPE"),
        (0.5, 0.5 + 1e-7, "CORRECT"),
        (0.5, 0.51, "WRONG_VALUE"),
        (math.nan, 1.0, "INVALID_REFERENCE"),
        (None, None, "CORRECT"),
        ("sum", "mean", "WRONG_VALUE"),
        (torch.empty(0, 3), torch.empty(0, 3), "CORRECT"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "WRONG_VALUE"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "WRONG_VALUE"),
    ],
)
def test_structure_and_exact_values(reference: object, candidate: object, expected: str) -> None:
    assert outcome(reference, candidate) == expected


def test_strides_may_differ() -> None:
    reference = normal(20, 30)
    assert outcome(reference, reference.t().contiguous().t()) == "CORRECT"


def test_path_index_values_and_share_are_in_the_message() -> None:
    reference = torch.tensor([float(i) for i in range(100)]).view(10, 10)
    candidate = reference.clone()
    candidate[3, 4] = 35.0
    candidate[7, 0] = 80.0
    mismatch = compare_outputs({"y": (1, reference)}, {"y": (1, candidate)}, DEFAULT)
    assert mismatch is not None
    assert mismatch.message.startswith("output['y'][1][3, 4]: expected 34, got 35 (allowed error ")
    assert mismatch.message.endswith("max absolute error 10, max relative error 0.143, 2 % of elements wrong")
    assert mismatch.stats["max_abs"] == 10.0
    assert mismatch.stats["wrong_share"] == 0.02
    assert mismatch.stats["first_index"] == [3, 4]


@pytest.mark.parametrize("size", [1e-6, 1e-2, 1.0, 1e6])
def test_the_tolerance_follows_the_scale(size: float) -> None:
    reference = normal(100, 100) * size
    noise = normal(100, 100, seed=1).sign()
    assert outcome(reference, reference + 0.5e-4 * size * noise) == "CORRECT"
    assert outcome(reference, reference + 3e-3 * size * noise) == "WRONG_VALUE"
    assert outcome(reference, torch.zeros_like(reference)) == "WRONG_VALUE"


def test_constants_never_pass_a_small_signal_on_a_large_offset() -> None:
    reference = 1000.0 + 0.01 * normal(100, 100)
    assert outcome(reference, torch.full_like(reference, 1000.0)) == "WRONG_VALUE"
    assert outcome(reference, reference * (1 + 1e-7)) == "CORRECT"
    assert (
        outcome(reference, torch.full_like(reference, 1000.0), TolerancePolicy.from_name("kernelgym")) == "WRONG_VALUE"
    )


def test_one_giant_element_does_not_loosen_the_others() -> None:
    reference = normal(100, 100)
    reference[0, 0] = 1e9
    candidate = reference.clone()
    candidate[50, 50] += 0.5
    assert outcome(reference, candidate) == "WRONG_VALUE"


def test_mostly_zero_output_has_the_spread_of_its_signal() -> None:
    reference = torch.zeros(100, 100)
    reference[::20, ::20] = 1.0
    assert outcome(reference, torch.zeros(100, 100)) == "WRONG_VALUE"
    assert outcome(reference, reference + 1e-7) == "CORRECT"


def test_constant_output_is_compared_relative_to_itself() -> None:
    reference = torch.ones(1000)
    assert outcome(reference, reference - 1e-6) == "CORRECT"
    assert outcome(reference, reference - 1e-2) == "WRONG_VALUE"
    assert outcome(torch.zeros(1000), torch.zeros(1000)) == "CORRECT"
    assert outcome(torch.zeros(1000), torch.full((1000,), 1e-3)) == "WRONG_VALUE"


def test_half_types_have_their_own_tolerance() -> None:
    reference = normal(1000).bfloat16()
    nudged = (reference.float() * 1.004).bfloat16()
    assert not torch.equal(reference, nudged)
    assert outcome(reference, nudged) == "CORRECT"
    assert outcome(reference.float(), nudged.float()) == "WRONG_VALUE"


def test_bfloat16_arithmetic_fails_a_float32_task() -> None:
    x = normal(64, 64)
    assert outcome(x.exp(), x.bfloat16().exp().float()) == "WRONG_VALUE"


def test_complex_outputs() -> None:
    reference = torch.complex(normal(50), normal(50, seed=1))
    assert outcome(reference, reference.clone()) == "CORRECT"
    assert outcome(reference, reference.conj()) == "WRONG_VALUE"


def test_special_values_sit_where_the_reference_has_them() -> None:
    reference = torch.tensor([1.0, math.inf, -math.inf, math.nan] * 5)
    assert outcome(reference, reference.clone()) == "CORRECT"
    for index, value in ((0, math.nan), (0, math.inf), (1, -math.inf), (1, 1e30), (3, 0.0), (3, math.inf)):
        candidate = reference.clone()
        candidate[index] = value
        assert outcome(reference, candidate) == "WRONG_VALUE"
    assert outcome(torch.full((9,), math.nan), torch.zeros(9)) == "INVALID_REFERENCE"


def test_a_wrong_element_is_found_in_any_chunk() -> None:
    reference = normal(700_000)
    for position in (0, 131_071, 131_072, 699_999):
        candidate = reference.clone()
        candidate[position] += 1.0
        mismatch = compare_outputs(reference, candidate, DEFAULT)
        assert mismatch is not None
        assert mismatch.outcome is Outcome.WRONG_VALUE
        assert mismatch.stats["first_index"] == [position]


def test_the_oracle_allows_torchs_own_error_but_never_the_signal() -> None:
    exact = normal(1000).double()
    reference = (exact + 1e-3 * normal(1000, seed=1).sign()).float()
    candidate = (exact - 1e-3 * normal(1000, seed=1).sign()).float()
    assert outcome(reference, candidate) == "WRONG_VALUE"
    assert outcome(reference, candidate, DEFAULT, exact) == "CORRECT"
    assert outcome(reference, torch.zeros(1000), DEFAULT, exact) == "WRONG_VALUE"
    assert outcome(reference, torch.zeros(1000), DEFAULT, exact + 100.0) == "WRONG_VALUE"
    assert outcome([reference], [candidate], DEFAULT, [exact]) == "CORRECT"
    assert outcome(reference, candidate, DEFAULT, exact.view(10, 100)) == "WRONG_VALUE"


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 1e-2)])
def test_kernelbench_is_allclose(dtype: torch.dtype, tolerance: float) -> None:
    policy = TolerancePolicy.from_name("kernelbench")
    reference = normal(400).to(dtype)
    for share in (0.3, 0.9, 1.5, 3.0):
        candidate = (reference.double() * (1 + share * tolerance) + share * tolerance).to(dtype)
        # torch.allclose rounds its bound in the dtype; in double both sides are exact.
        expected = torch.allclose(candidate.double(), reference.double(), rtol=tolerance, atol=tolerance)
        assert (outcome(reference, candidate, policy) == "CORRECT") is expected


def test_kernelgym_is_a_hundred_times_wider_for_float32() -> None:
    reference = normal(1000)
    policy = TolerancePolicy.from_name("kernelgym")
    assert outcome(reference, reference + 5e-3, policy) == "CORRECT"
    assert outcome(reference, reference + 5e-3) == "WRONG_VALUE"
    assert outcome(reference, reference + 0.3, policy) == "WRONG_VALUE"


def test_unknown_policy() -> None:
    with pytest.raises(ValueError, match="use default, kernelgym or kernelbench"):
        TolerancePolicy.from_name("loose")


def test_single_tolerances_replace_the_policys() -> None:
    settings = EvalSettings(tolerance="kernelbench", tolerance_overrides={"float32": 0.5, "half": 0.0})
    policy = TolerancePolicy.from_settings(settings)
    assert (policy.name, policy.float32, policy.half, policy.float64, policy.scaled) == (
        "kernelbench",
        0.5,
        0.0,
        1e-4,
        False,
    )
    reference = torch.tensor([1.0, 2.0])
    assert compare_outputs(reference, reference * 1.4, policy) is None
    assert compare_outputs(reference.half(), reference.half() * 1.01, policy) is not None
    with pytest.raises(ValueError, match="tolerance_overrides"):
        EvalSettings.model_validate({"tolerance_overrides": {"int8": 1.0}})
