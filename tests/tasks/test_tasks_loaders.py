"""Every source of tasks, read from files of our own, and what a person is told of bad ones."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from davinci_kernel.config import TasksConfig
from davinci_kernel.errors import UserError
from davinci_kernel.tasks import load_reference_file, load_tasks, row_from_task, task_from_row
from davinci_kernel.tasks._loaders import _hub


def load(source: Path | str, seed: int = 0, **fields):
    return load_tasks(TasksConfig(source=str(source), **fields), seed)


def by_id(tasks):
    return {task.task_id: task for task in tasks}


@pytest.fixture
def rows(reference):
    return [
        {"level": level, "problem_id": problem, "name": f"{problem}_scale", "code": reference(10 * level + problem)}
        for level in (1, 2)
        for problem in (1, 2, 3)
    ]


@pytest.fixture
def folder(tmp_path, rows):
    root = tmp_path / "KernelBench"
    for row in rows:
        path = root / f"level{row['level']}" / f"{row['name']}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["code"])
    return root


@pytest.fixture
def jsonl(tmp_path, rows):
    path = tmp_path / "bench.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    return path


@pytest.fixture
def parquet(tmp_path, rows):
    path = tmp_path / "bench.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("layout", ["folder", "jsonl", "parquet"])
def test_the_three_kernelbench_layouts_hold_the_same_tasks(layout, rows, request):
    tasks = by_id(load(request.getfixturevalue(layout)))
    assert sorted(tasks) == [f"kernelbench/{level}/{problem}" for level in (1, 2) for problem in (1, 2, 3)]
    for row in rows:
        task = tasks[f"kernelbench/{row['level']}/{row['problem_id']}"]
        assert (task.code, task.name, task.level) == (row["code"], row["name"], row["level"])
        assert task.metadata["problem_id"] == row["problem_id"]


def test_a_flat_folder_has_no_levels(tmp_path, reference):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "scale.py").write_text(reference())
    (tmp_path / "mine" / "__init__.py").write_text("")
    (task,) = load(tmp_path / "mine")
    assert (task.task_id, task.name, task.level) == ("mine/scale", "scale", None)


def test_a_level_folder_alone_keeps_its_level(folder):
    tasks = load(folder / "level2")
    assert {task.level for task in tasks} == {2}
    assert len(tasks) == 3


def test_the_published_rl_layout(tmp_path, reference):
    path = tmp_path / "rl.parquet"
    row = {
        "prompt": [{"role": "user", "content": "optimise"}],
        "reward_model": {"ground_truth": reference(3.0, "Net"), "style": "rule"},
        "entry_point": "Net",
        "uuid": "abc-1",
    }
    pq.write_table(pa.Table.from_pylist([row]), path)
    (task,) = load(path)
    assert (task.task_id, task.entry_point, task.level) == ("abc-1", "Net", None)
    assert task.code == reference(3.0, "Net")


def test_rows_without_an_id_are_numbered(tmp_path, reference):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"code": reference(i)}) + "\n" for i in range(2)))
    assert sorted(by_id(load(path))) == ["mine/0", "mine/1"]


def test_written_rows_read_back_equal():
    for task in load("generator", limit=20):
        row = json.loads(json.dumps(row_from_task(task)))
        back = task_from_row(row, "here", "fallback")
        assert back == task
        assert back.content_hash == task.content_hash


def test_levels_seed_and_limit(jsonl):
    assert {t.level for t in load(jsonl, levels=(2,))} == {2}
    orders = [tuple(t.task_id for t in load(jsonl, seed)) for seed in (0, 0, 1, 2)]
    assert orders[0] == orders[1]
    assert len(set(orders)) > 1
    assert tuple(t.task_id for t in load(jsonl, limit=2)) == orders[0][:2]
    with pytest.raises(UserError, match=r"bench\.jsonl: no tasks of level 7"):
        load(jsonl, levels=(7,))


def test_generator_source_takes_options_and_gives_distinct_tasks():
    options = {"operators": ["mul", "tanh"], "max_ops": 2, "tails": [], "shapes": [[4, 8]]}
    tasks = load("generator", limit=30, split="heldout", options=options)
    assert len({task.code for task in tasks}) == 30
    assert {task.metadata["split"] for task in tasks} == {"heldout"}
    assert {op["op"] for task in tasks for op in task.metadata["steps"]} == {"mul", "tanh"}
    with pytest.raises(UserError, match=r"found \d+ of 500 distinct tasks"):
        load("generator", limit=500, options={"operators": ["sin", "tanh"], "max_ops": 2, "tails": []})


def test_suite_source_takes_a_size():
    tasks = load("suite", options={"size": 2}, levels=(1,))
    assert {task.metadata["size"] for task in tasks} == {2.0}
    assert {task.level for task in tasks} == {1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "generator", "split": "test"}, "tasks.split test: the generator has `train` and `heldout`"),
        ({"source": "generator", "options": {"colour": 1}}, "tasks.options: colour: unknown field"),
        ({"source": "suite", "options": {"size": -1}}, "tasks.options: size: Input should be greater than 0"),
        ({"source": "nothing.here"}, "nothing.here: no such file, and not `generator`, `suite` or an HF hub id"),
        ({"source": "gone.jsonl"}, "gone.jsonl: no such file"),
        ({"source": "gone.parquet"}, "gone.parquet: no such file"),
        ({"source": "gone.py"}, "gone.py: no such file"),
    ],
)
def test_unusable_configurations(fields, message):
    with pytest.raises(UserError) as error:
        load_tasks(TasksConfig(**fields), 0)
    assert str(error.value).startswith(message)


def test_options_do_not_belong_to_files(jsonl):
    with pytest.raises(UserError, match="takes no options"):
        load(jsonl, options={"size": 2})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "bad.jsonl:2: not valid JSON"),
        ("[1]", "bad.jsonl:2: expected an object per line"),
        ('{"name": "x"}', "bad.jsonl:2: no reference"),
        ('{"code": "def f(:"}', "bad.jsonl:2: not valid Python: invalid syntax (line 1)"),
        ('{"code": "x = 1"}', "bad.jsonl:2: defines no Model"),
        ('{"code": "class Model: pass\\ndef get_inputs(): pass"}', "bad.jsonl:2: defines no get_init_inputs"),
    ],
)
def test_a_bad_row_is_named(tmp_path, reference, text, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"code": reference()}) + "\n" + text + "\n")
    with pytest.raises(UserError) as error:
        load(path)
    assert str(error.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(error.value)


def test_a_bad_level_and_bad_metadata_are_named(reference):
    with pytest.raises(UserError, match="row 3: level: expected an integer, found 'hard'"):
        task_from_row({"code": reference(), "level": "hard"}, "row 3", "x")
    with pytest.raises(UserError, match="row 3: metadata: not valid JSON"):
        task_from_row({"code": reference(), "metadata": "{"}, "row 3", "x")


def test_ids_must_be_unique(tmp_path, rows):
    path = tmp_path / "twice.jsonl"
    path.write_text(f"{json.dumps(rows[0])}\n{json.dumps(rows[0])}\n")
    with pytest.raises(UserError, match="two tasks are called kernelbench/1/1"):
        load(path)


def test_bad_files_and_folders(tmp_path, reference):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty: no Python files"):
        load(tmp_path / "empty")
    (tmp_path / "bad.parquet").write_text("not parquet")
    with pytest.raises(UserError, match=r"bad\.parquet: not a readable parquet file"):
        load(tmp_path / "bad.parquet")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UserError, match=r"notes\.txt: expected a folder, or a file that ends in"):
        load(tmp_path / "notes.txt")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"binary\.py: not a text file"):
        load_reference_file(tmp_path / "binary.py")


def test_a_reference_file(tmp_path, reference):
    path = tmp_path / "ref.py"
    path.write_text(reference())
    task = load_reference_file(path)
    assert (task.task_id, task.name, task.code) == (str(path), "ref", reference())
    with pytest.raises(UserError, match=r"ref\.py: defines no Net"):
        load_reference_file(path, "Net")


def test_names_bound_inside_functions_do_not_count(tmp_path, reference):
    path = tmp_path / "hidden.py"
    nested = "\n".join("    " + line for line in reference().splitlines())
    path.write_text(f"def hidden():\n{nested}\n")
    with pytest.raises(UserError, match="defines no Model"):
        load_reference_file(path)
    path.write_text(f"if True:\n{nested}\n")
    assert load_reference_file(path).name == "hidden"


def test_a_missing_hub_is_one_line(monkeypatch):
    """No network is used: the hub's client is told to be offline, and says so."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError) as error:
        load("nobody-here/no-such-tasks")
    assert str(error.value).startswith("nobody-here/no-such-tasks: no such file, and the HF hub gave no data set: ")
    assert "\n" not in str(error.value)


def test_a_data_set_with_kernelbench_splits(tmp_path, rows, monkeypatch):
    """The hub's client reads a folder in the hub's own layout just as it reads an id, without a network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    splits = []
    for level in (1, 2):
        path = tmp_path / "data" / f"level_{level}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row for row in rows if row["level"] == level]), path)
        splits.append(f"  - split: level_{level}\n    path: data/level_{level}.parquet\n")
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files:\n{''.join(splits)}---\n")
    found = list(_hub(str(tmp_path), "train"))
    assert [row["name"] for _, row in found] == [row["name"] for row in rows]
    assert found[3][0] == f"{tmp_path}: level_2 row 0"
    assert [row["level"] for _, row in _hub(str(tmp_path), "level_2")] == [2, 2, 2]
