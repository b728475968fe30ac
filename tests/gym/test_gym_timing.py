"""Statistics of interleaved timings against hand-computed numbers."""

import math

import pytest

from davinci_kernel.gym._measure import Call, Session
from davinci_kernel.gym._timing import combine, contended, process_ratio


def test_process_ratio_is_ratio_of_medians():
    assert process_ratio([2.0, 8.0, 4.0], [1.0, 1.0, 50.0]) == 4.0


def test_combine_three_processes_by_hand():
    # logs of 1, 2, 4 are 0, ln 2, 2 ln 2: mean ln 2, deviation ln 2; half-width 4.303 ln 2 / sqrt 3.
    speedup = combine([1.0, 2.0, 4.0])
    half = 4.303 * math.log(2) / math.sqrt(3)
    assert speedup.value == pytest.approx(2.0)
    assert speedup.low == pytest.approx(2.0 * math.exp(-half))
    assert speedup.high == pytest.approx(2.0 * math.exp(half))
    assert speedup.relative == pytest.approx(math.exp(half) - 1)


def test_combine_needs_two_processes():
    assert combine([2.0]) is None


def test_equal_ratios_have_no_width():
    assert combine([3.0, 3.0]).relative == pytest.approx(0.0)


def test_contended_needs_preemption_and_an_outlier():
    assert contended([1.0, 1.0, 1.0, 9.0, 9.0], [0, 1, 0, 1, 0]) == [False, False, False, True, False]


def call(inside, outside, switches=0):
    return Call(inside=inside, outside=outside, faults=0, switches=switches)


def test_a_clock_that_hides_time_is_seen_in_every_call():
    session = Session([call(0.010, 0.0101)] * 4, [call(0.001, 0.0101)] * 4)
    assert session.hides_time() == [True] * 4


def test_usual_overhead_is_no_hidden_time():
    session = Session([call(0.001, 0.0012)] * 4, [call(0.0005, 0.0008)] * 4)
    assert session.hides_time() == [False] * 4


def test_too_few_undisturbed_rounds_are_charged_by_the_outside_clock():
    session = Session([call(0.010, 0.011)] * 4, [call(0.001, 0.020)] * 4)
    kept = session.keep([True, False, False, False])
    assert kept.ratio == pytest.approx(0.011 / 0.020)
