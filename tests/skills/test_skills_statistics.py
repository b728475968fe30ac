"""Per-skill statistics against numbers computed by hand."""

import json
import statistics

import pytest

from davinci_kernel.errors import UserError
from davinci_kernel.skills import SkillStatistics


def filled():
    stats = SkillStatistics()
    # Task 1: "a" in both schemes, "b" in the second; null mean 1.
    stats.record_task(["a", "b", "c"], [(["a"], [2.0, 4.0]), (["a", "b"], [3.0])], [0.0, 2.0])
    # Task 2: "a" again; null mean 2.
    stats.record_task(["a", "c"], [(["a"], [2.5]), ([], [9.0])], [2.0])
    # Task 3: null rollouts were all lost.
    stats.record_task(["a"], [(["a"], [1.0])], [])
    # Task 4: the scheme's rollouts were all lost.
    stats.record_task(["a"], [(["a"], [])], [5.0])
    return stats


def test_counts_and_means_by_hand():
    a = filled().get("a")
    assert (a.offered, a.selected, a.rollouts, a.paired_tasks) == (4, 5, 5, 2)
    assert a.mean_reward == pytest.approx((2 + 4 + 3 + 2.5 + 1) / 5)
    assert a.null_reward == pytest.approx((1 + 2) / 2)
    # Uplifts: task 1: 3 - 1 = 2; task 2: 2.5 - 2 = 0.5. Standard error: |2 - 0.5| / sqrt(2) / sqrt(2) = 0.75.
    assert a.uplift == pytest.approx(1.25)
    assert a.uplift_error == pytest.approx(0.75)


def test_one_task_has_an_uplift_without_error():
    b = filled().get("b")
    assert (b.offered, b.selected, b.rollouts, b.uplift, b.uplift_error) == (1, 1, 1, 2.0, None)


def test_offered_only_and_never_seen():
    stats = filled()
    for name, offered in (("c", 2), ("unknown", 0)):
        row = stats.get(name)
        assert (row.offered, row.selected, row.mean_reward, row.null_reward, row.uplift) == (
            offered,
            0,
            None,
            None,
            None,
        )
    assert stats.names == ("a", "b", "c")


def test_a_name_twice_counts_once():
    stats = SkillStatistics()
    stats.record_task(["a", "a"], [(["a", "a"], [1.0])], [1.0])
    assert (stats.get("a").offered, stats.get("a").selected, stats.get("a").rollouts) == (1, 1, 1)


def test_error_over_many_tasks_agrees_with_the_standard_library():
    rewards = [1000.0 + x for x in (0.1, 0.7, 0.3, 0.9, 0.2)]
    stats = SkillStatistics()
    for reward in rewards:
        stats.record_task(["a"], [(["a"], [reward])], [1.0])
    expected = statistics.stdev(rewards) / len(rewards) ** 0.5
    assert stats.get("a").uplift_error == pytest.approx(expected, rel=1e-9)


def test_saved_statistics_continue_exactly(tmp_path):
    path = tmp_path / "skills" / "stats.json"
    filled().save(path)
    assert json.loads(path.read_text())["skills"]["a"]["uplift"] == pytest.approx(1.25)
    resumed, whole = SkillStatistics.load(path), filled()
    for stats in (resumed, whole):
        stats.record_task(["a"], [(["a"], [0.3])], [0.1])
    assert resumed.state_dict() == whole.state_dict()


def test_no_file_is_an_empty_start(tmp_path):
    assert SkillStatistics.load(tmp_path / "stats.json").names == ()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"skills": {"a": {"offered": "many"}}}', '{"skills": 3}'])
def test_a_foreign_file_is_named(tmp_path, text):
    path = tmp_path / "stats.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"stats\.json: not skill statistics"):
        SkillStatistics.load(path)
