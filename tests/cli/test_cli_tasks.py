"""`davinci tasks` as a person types it."""

import json

import pytest

from davinci_kernel import cli
from davinci_kernel.config import TasksConfig
from davinci_kernel.tasks import load_tasks


@pytest.fixture
def davinci(monkeypatch, capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["davinci", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return run


def test_list_prints_the_suite(davinci, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = davinci("tasks", "list")
    assert code == 0
    assert "suite/3/swiglu_mlp" in out
    code, out, _ = davinci("tasks", "list", "--level", "1", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row["level"] for row in rows} == {1}


def test_show_prints_the_code_by_id_or_name(davinci):
    _, by_id, _ = davinci("tasks", "show", "suite/1/gelu")
    _, by_name, _ = davinci("tasks", "show", "gelu", "-o", "size=2")
    assert "ROWS = 256\n" in by_id
    assert by_name == by_id.replace("ROWS = 256\n", "ROWS = 512\n")
    code, out, err = davinci("tasks", "show", "nothing")
    assert (code, out) == (2, "")
    assert err == "davinci: suite: no task 'nothing'; `davinci tasks list suite` prints the ids\n"


def test_generate_writes_what_load_tasks_reads(davinci, tmp_path):
    out = tmp_path / "new" / "tasks.jsonl"
    command = (
        "tasks",
        "generate",
        str(out),
        "--count",
        "5",
        "--split",
        "heldout",
        "--seed",
        "3",
        "-o",
        "shapes=[[8,16]]",
    )
    code, _, _ = davinci(*command)
    assert code == 0
    assert [path.name for path in out.parent.iterdir()] == ["tasks.jsonl"]
    first = out.read_bytes()
    tasks = load_tasks(TasksConfig(source=str(out)), 0)
    assert len(tasks) == 5
    assert {tuple(task.metadata["shape"]) for task in tasks} == {(8, 16)}
    davinci(*command)
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "tasks.txt"), "tasks.txt: expected a name that ends in .jsonl"),
        (("generate", "t.jsonl", "-o", "size"), "--option size: expected key=value"),
        (("generate", "t.jsonl", "-o", "max_ops=[1"), "--option max_ops=[1: the value is not valid YAML"),
        (("generate", "t.jsonl", "-o", "max_ops=0"), "tasks.options: max_ops: Input should be greater"),
        (("generate", "t.jsonl", "--split", "test"), "tasks.split test: the generator has"),
        (("list", "gone.jsonl"), "gone.jsonl: no such file"),
    ],
)
def test_bad_arguments_exit_with_one_line(davinci, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = davinci("tasks", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"davinci: {message}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
