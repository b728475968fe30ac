"""The shipped list of defective tasks."""

import json
from importlib.resources import files
from types import SimpleNamespace
from typing import get_args

from davinci_kernel.tasks import FindingName, Task, known_defects

DATA = json.loads((files("davinci_kernel.tasks") / "data" / "defective.json").read_text())


def test_every_entry_has_a_task_and_reasons_that_the_audit_knows():
    assert len({entry["task"] for entry in DATA["defective"].values()}) == len(DATA["defective"])
    for content_hash, entry in DATA["defective"].items():
        assert len(content_hash) == 16
        assert int(content_hash, 16) >= 0
        assert entry["task"] in DATA["audited"]
        assert entry["findings"]
        assert set(entry["findings"]) <= set(get_args(FindingName))
        assert all(entry["findings"].values())


def test_the_published_facts_are_on_the_list():
    """KernelBench v0.1: L2/9 is zero; 23, 80, 83 constant; 36 independent of its input; L3/28 too; L2/66 random."""
    findings = {entry["task"]: set(entry["findings"]) for entry in DATA["defective"].values()}
    assert "zero_output" in findings["kernelbench/2/9"]
    assert all("constant_output" in findings[f"kernelbench/2/{n}"] for n in (23, 80, 83))
    assert all("input_independent" in findings[f"kernelbench/{task}"] for task in ("2/36", "3/28"))
    assert "random_output" in findings["kernelbench/2/66"]


def test_defects_are_found_by_content():
    content_hash, entry = next(iter(DATA["defective"].items()))
    assert known_defects(SimpleNamespace(content_hash=content_hash)) == entry["findings"]
    assert known_defects(Task("t", "class Model: ...")) == {}
