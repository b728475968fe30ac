"""`davinci skills` over a library on disk."""

import json

import pytest
import typer
from typer.testing import CliRunner

from davinci_kernel.cli.skills import register
from davinci_kernel.errors import UserError
from davinci_kernel.skills import Skill, SkillLibrary, SkillStatistics


@pytest.fixture
def run_dir(tmp_path):
    library = SkillLibrary(tmp_path / "skills")
    fuse = Skill(
        name="fuse-rows",
        description="One [bold] pass.",
        tags=("fusion", "cache", "rows"),
        content="## Key Idea\nFuse.",
        verify_speedup=1.75,
        provenance={"task_id": "gen/1"},
    )
    for step, skill in ((1, fuse), (2, Skill(name="openmp", description="Threads.", content="pragma omp"))):
        library.stage(skill)
        library.flush(step)
    stats = SkillStatistics()
    stats.record_task(["fuse-rows"], [(["fuse-rows"], [2.0])], [1.5])
    stats.save(tmp_path / "skills" / "stats.json")
    return tmp_path


def davinci(*arguments):
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["skills", *map(str, arguments)], env={"COLUMNS": "200"})


def parsed(*arguments):
    result = davinci(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_prints_every_skill_and_brackets_as_they_are(run_dir):
    result = davinci("list", run_dir)
    assert result.exit_code == 0
    for text in ("fuse-rows", "openmp", "1.75x", "One [bold] pass.", "2 skills"):
        assert text in result.stdout


def test_list_json_of_an_earlier_step(run_dir):
    assert [s["name"] for s in parsed("list", run_dir)] == ["fuse-rows", "openmp"]
    assert [s["name"] for s in parsed("list", run_dir / "skills", "--step", 1)] == ["fuse-rows"]


def test_show(run_dir):
    text = davinci("show", run_dir, "fuse-rows").stdout
    assert text.startswith("# fuse-rows\n")
    for part in ("## Key Idea\nFuse.", "verified speedup: 1.75x", "+0.50", "gen/1"):
        assert part in text
    record = parsed("show", run_dir, "fuse-rows")
    assert (record["verify_speedup"], record["statistics"]["uplift"]) == (1.75, 0.5)


def test_search_finds_by_words_and_by_a_file(run_dir, tmp_path):
    assert [s["name"] for s in parsed("search", run_dir, "omp threads")] == ["openmp"]
    reference = tmp_path / "ref.py"
    reference.write_text("# fuse me\n")
    assert [s["name"] for s in parsed("search", run_dir, reference)] == ["fuse-rows"]
    assert parsed("search", run_dir, "unheard") == []
    assert "fuse-rows" in davinci("search", run_dir, "fuse").stdout


def test_stats(run_dir):
    assert parsed("stats", run_dir)["fuse-rows"]["null_reward"] == 1.5
    assert "+0.50" in davinci("stats", run_dir).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "no/such/folder"), "no/such/folder: no such folder"),
        (("show", "RUN", "nope"), "no skill 'nope'"),
        (("list", "RUN", "--step", 0), "--step 0: the first snapshot"),
        (("list", "EMPTY"), "no snapshot"),
    ],
)
def test_bad_input_is_one_line(run_dir, tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    places = {"RUN": run_dir, "EMPTY": tmp_path / "empty"}
    error = davinci(*(places.get(a, a) for a in arguments)).exception
    assert isinstance(error, UserError)
    assert message in str(error)
    assert "\n" not in str(error)
