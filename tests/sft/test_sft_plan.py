import random

import pytest

from davinci_kernel.sft import TECHNIQUES, Habits, Plan
from davinci_kernel.sft._plan import improve


def test_gained_over_names_what_the_other_lacks_in_order():
    assert Plan(fused=True, fast_math=True).gained_over(Plan(fused=True)) == ("fast_math",)
    assert Plan(True, True, True, True, True).gained_over(Plan()) == TECHNIQUES
    assert Plan().gained_over(Plan(parallel=True)) == ()


def test_with_unknown_technique_names_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown technique 'tiling'; known: parallel"):
        Plan().with_("tiling")


def test_improve_only_ever_adds_one_or_two_techniques():
    rng = random.Random(0)
    added = {len(improve(Plan(), rng).gained_over(Plan())) for _ in range(100)}
    assert added == {1, 2}
    full = Plan(True, True, True, True, True)
    assert improve(full, rng) == full


def test_habits_are_frequencies():
    rng = random.Random(0)
    plans = [Habits(parallel=1.0, fused=0.0, single=0.5, fast_math=0.0, wide=0.0).draw(rng) for _ in range(400)]
    assert all(p.parallel and not p.fused and not p.fast_math and not p.wide for p in plans)
    assert 150 < sum(p.single for p in plans) < 250
