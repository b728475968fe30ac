"""Staging, flushing, merging, snapshots and resume."""

import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from davinci_kernel.errors import UserError
from davinci_kernel.skills import Skill, SkillLibrary, content_similarity


def skill(name, content, verified=None, **fields):
    return Skill(name=name, content=content, verify_speedup=verified, **fields)


def names(library):
    return [s.name for s in library.skills]


def test_staged_skills_become_active_at_the_flush(tmp_path):
    library = SkillLibrary(tmp_path / "skills")
    library.stage(skill("a", "fuse the passes", 1.5))
    assert (len(library), library.get("a"), len(library.staged)) == (0, None, 1)
    report = library.flush(3)
    assert (report.added, report.merged, report.path) == (("a",), (), tmp_path / "skills" / "global_step_3.jsonl")
    assert (names(library), library.staged) == (["a"], ())
    line = json.loads(report.path.read_text())
    assert (line["name"], line["content"], line["verify_speedup"]) == ("a", "fuse the passes", 1.5)


def test_every_flush_writes_a_snapshot_even_when_nothing_is_new(tmp_path):
    library = SkillLibrary(tmp_path)
    library.flush(1)
    assert library.flush(2).path.read_text() == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["global_step_1.jsonl", "global_step_2.jsonl"]


def test_a_failed_update_flushes_nothing(tmp_path):
    library = SkillLibrary(tmp_path)
    library.stage(skill("a", "x"))
    library.discard_staged()
    assert (library.flush(1).added, len(library)) == ((), 0)


def test_equal_names_get_numbers_whatever_their_spelling():
    library = SkillLibrary(None, [skill("fuse-rows", "one two three")])
    for content in ("red green blue", "cat dog bird"):
        library.stage(skill("Fuse_Rows", content))
    assert library.flush(1).added == ("Fuse_Rows_2", "Fuse_Rows_3")
    assert names(library) == ["fuse-rows", "Fuse_Rows_2", "Fuse_Rows_3"]


def test_similarity_by_hand():
    assert content_similarity("tile by 32 rows", "Tile by 64 rows") == 1.0
    assert content_similarity("a b c d", "a b c e") == 3 / 5
    assert (
        content_similarity("## Motivation\nslow\n## Key Idea\nfuse", "## Motivation\nfast\n## Key Idea\nsplit") == 0.0
    )
    assert content_similarity("", "") == 0.0


def test_a_near_duplicate_merges_and_the_better_verified_body_stays():
    old = skill("tile", "tile rows by 32", 1.3, provenance={"task_id": "t1"})
    library = SkillLibrary(None, [old])
    library.stage(skill("tiling", "tile rows by 64", 2.0, provenance={"task_id": "t2"}))
    report = library.flush(1)
    assert (report.added, report.merged, names(library)) == ((), (("tiling", "tile"),), ["tile"])
    kept = library.get("tile")
    assert (kept.content, kept.verify_speedup, kept.provenance["task_id"]) == ("tile rows by 64", 2.0, "t2")
    assert kept.provenance["merged"] == [{"name": "tile", "verify_speedup": 1.3, "provenance": {"task_id": "t1"}}]


def test_a_worse_verified_duplicate_only_leaves_its_provenance():
    library = SkillLibrary(None, [skill("tile", "tile rows by 32", 1.3)])
    for verified in (1.2, None, 1.3):
        library.stage(skill("tiling", "tile rows by 64", verified, provenance={"step": 4}))
    library.flush(1)
    kept = library.get("tile")
    assert kept.content == "tile rows by 32"
    assert [m["verify_speedup"] for m in kept.provenance["merged"]] == [1.3, 1.2, None]
    assert kept.provenance["merged"][0]["provenance"] == {"step": 4}


def test_the_merge_threshold_is_inclusive_and_configurable():
    bodies = ("a b c d", "a b c e")  # similarity 3/5
    for threshold, expected in ((0.6, 1), (0.61, 2)):
        library = SkillLibrary(None, [skill("one", bodies[0])], merge_similarity=threshold)
        library.stage(skill("two", bodies[1]))
        library.flush(1)
        assert len(library) == expected


def test_duplicates_within_one_flush_merge_and_the_order_of_staging_does_not_matter():
    staged = [skill("b", "tile rows by 1", 1.4), skill("a", "tile rows by 2", 1.9), skill("c", "something else", 1.5)]
    results = []
    for order in (staged, staged[::-1]):
        library = SkillLibrary(None)
        for item in order:
            library.stage(item)
        library.flush(1)
        results.append(library.skills)
    assert results[0] == results[1]
    assert [(s.name, s.verify_speedup) for s in results[0]] == [("a", 1.9), ("c", 1.5)]


def test_resume_takes_the_newest_snapshot_up_to_the_step_and_ignores_later_ones(tmp_path):
    library = SkillLibrary(tmp_path)
    for step, name in ((2, "alpha"), (9, "beta"), (10, "gamma")):
        library.stage(skill(name, f"content {name}"))
        library.flush(step)
    assert names(SkillLibrary.load(tmp_path)) == ["alpha", "beta", "gamma"]  # 10 is newer than 9: numbers, not text
    assert names(SkillLibrary.load(tmp_path, step=9)) == ["alpha", "beta"]
    assert names(SkillLibrary.load(tmp_path, step=8)) == ["alpha"]
    assert names(SkillLibrary.load(tmp_path, step=1)) == []


def test_a_resumed_library_continues_where_it_was(tmp_path):
    library = SkillLibrary(tmp_path)
    library.stage(skill("a", "first idea", 1.5, provenance={"step": 1}))
    library.flush(1)
    resumed = SkillLibrary.load(tmp_path, step=1)
    assert resumed.skills == library.skills
    resumed.stage(skill("a", "second thought"))
    assert resumed.flush(2).added == ("a_2",)


def test_published_libraries_load_as_they_are(tmp_path):
    line = {"name": "x", "tags": None, "verify_speedup": 1.7, "created_step": 12, "usage": {"n": 3}}
    (tmp_path / "global_step_12.jsonl").write_text(f"{json.dumps(line)}\n\n" + '{"name": "only-a-name"}')
    library = SkillLibrary.load(tmp_path)
    assert (names(library), library.get("x").tags, library.get("x").description) == (["x", "only-a-name"], (), "")
    first = json.loads(library.flush(13).path.read_text().splitlines()[0])
    assert (first["created_step"], first["usage"]) == (12, {"n": 3})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", "not JSON"),
        ("[1]", "expected an object"),
        ('{"description": "no name"}', "field name"),
        ('{"name": ""}', "field name"),
        ('{"name": "x", "verify_speedup": "fast"}', "field verify_speedup"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, message):
    path = tmp_path / "global_step_1.jsonl"
    path.write_text('{"name": "fine"}\n' + line + "\n")
    with pytest.raises(UserError) as error:
        SkillLibrary.load(tmp_path)
    assert f"{path}:2: {message}" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_binary_file_is_named(tmp_path):
    (tmp_path / "global_step_1.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"global_step_1\.jsonl: not UTF-8"):
        SkillLibrary.load(tmp_path)


@pytest.mark.parametrize("folder", ["missing", "."])
def test_no_snapshot_is_named(tmp_path, folder):
    with pytest.raises(UserError, match="no snapshot"):
        SkillLibrary.load(tmp_path / folder)


def test_a_failed_write_changes_nothing(tmp_path):
    (tmp_path / "root").write_text("a file where the folder should be")
    library = SkillLibrary(tmp_path / "root")
    library.stage(skill("a", "x"))
    with pytest.raises(OSError):
        library.flush(1)
    assert (len(library), len(library.staged)) == (0, 1)


def _die_before_rename(root):
    Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
    library = SkillLibrary.load(root)
    library.stage(skill("b", "another idea"))
    library.flush(1)


def test_a_kill_between_write_and_rename_leaves_the_old_snapshot(tmp_path):
    library = SkillLibrary(tmp_path)
    library.stage(skill("a", "first idea"))
    before = library.flush(1).path.read_bytes()
    process = multiprocessing.get_context("fork").Process(target=_die_before_rename, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2  # the temporary file was written
    assert (tmp_path / "global_step_1.jsonl").read_bytes() == before
    assert names(SkillLibrary.load(tmp_path)) == ["a"]
