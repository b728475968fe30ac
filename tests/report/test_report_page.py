"""The page of a run: well-formed, self-contained, escaped, complete, and true to the run's files."""

import gzip
import json
import re
from html.parser import HTMLParser

import pytest
import typer
from typer.testing import CliRunner

from davinci_kernel.cli.report import register
from davinci_kernel.errors import UserError
from davinci_kernel.report import write_report

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Checks nesting, collects ids, links, text, scripts, tables, and text of `pre` elements."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.ids, self.tags = [], [], [], []
        self.links, self.sources, self.scripts, self.pre, self.cells = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)
            if name in ("src", "srcset", "data", "action", "poster") or name.startswith("on"):
                self.sources.append((tag, name, value))
        if tag in ("pre", "script"):
            (self.pre if tag == "pre" else self.scripts).append("")
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append((tag, self.getpos()))

    def handle_data(self, data):
        if "pre" in self.open:
            self.pre[-1] += data
        if "script" in self.open:
            self.scripts[-1] += data
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1][-1] += data


def page_of(run_dir):
    return Page(write_report(run_dir).read_text(encoding="utf-8"))


@pytest.fixture
def page(run_dir):
    return page_of(run_dir)


def rollouts_in(page):
    return {a["id"]: a for tag, a in page.tags if tag == "details" and "rollout" in a.get("class", "").split()}


def test_tags_are_balanced_and_ids_unique(page):
    assert page.faults == []
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))


def test_nothing_is_requested_from_elsewhere(run_dir, page):
    text = (run_dir / "report.html").read_text()
    assert page.sources == []
    assert not [tag for tag, _ in page.tags if tag in ("link", "img", "iframe", "object", "embed", "base")]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert all(link.startswith("#") for link in page.links)


def test_every_link_has_its_target(page):
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_text_of_a_model_stays_text(page):
    from_the_model = "<script>alert('owned')</script><img src=x onerror=alert(1)>"
    assert len(page.scripts) == 1
    assert "owned" not in page.scripts[0]
    shown = [text for text in page.pre if from_the_model in text]
    assert any(text.startswith("## Motivation") for text in shown)
    assert any(text.startswith("<system> Write ModelNew") for text in shown)
    assert any('"name": "summary"' in text for text in shown)


def test_hostile_names_stay_text(run_dir):
    (run_dir / "tasks.jsonl").write_text(
        json.dumps({"task_id": "gen/train/0/1", "name": "<b>x</b>", "code": "</pre><i>"}) + "\n"
    )
    path = run_dir / "rollouts" / "step_1.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    rows[0] |= {
        "task_id": '"><b>y</b>',
        "verdict": {"outcome": "CORRECT", "speedup": 99.0},
        "reward": 99.0,
        "code": "<u>z</u>",
    }
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in rows).encode()))
    page = page_of(run_dir)
    assert page.faults == []
    assert not [tag for tag, _ in page.tags if tag in ("b", "i", "u")]
    assert "<u>z</u>" in "".join(page.pre)


def test_the_table_has_the_numbers_of_the_summary_files(run_dir, page):
    shown = {row[0]: row[1:] for row in page.cells if len(row) == 3}
    assert shown["Metric"] == ["sft", "rl"]
    summaries = [json.loads((run_dir / "grades" / label / "summary.json").read_text()) for label in ("sft", "rl")]
    names = ["correct", "compiled", "hack", "mean_speedup", "geomean_speedup"]
    names += [f"fast_{p}{suffix}" for p in ("1", "1.2", "1.5", "2", "3") for suffix in ("", "_ge")]
    for name in names:
        figures = [[s[name][part] for part in ("value", "low", "high")] for s in summaries]
        assert shown[name] == ["{:.3f} [{:.3f}, {:.3f}]".format(*f) for f in figures]


def test_figures_are_drawn(page):
    assert sum(tag == "svg" for tag, _ in page.tags) == 1 + 9
    assert all("viewbox" in a for tag, a in page.tags if tag == "svg")


def test_the_library_is_complete_and_leads_to_its_rollout(run_dir, page):
    text = (run_dir / "report.html").read_text()
    for line in (run_dir / "skills" / "global_step_18.jsonl").read_text().splitlines():
        skill = json.loads(line)
        assert f"<strong>{skill['name']}</strong>" in text
        assert skill["content"] in page.pre
    # Three tasks: uplifts 0.5, 0.75, -0.25: mean 1/3, standard error 0.3005.
    assert "+0.33 ± 0.30" in text
    (anchor,) = [link[1:] for link in page.links if link.startswith("#policy")]
    source = rollouts_in(page)[anchor]
    assert (source["data-step"], "CORRECT" in source["data-outcome"]) == ("12", True)


def test_rollouts_of_first_middle_and_last_step_and_the_extremes(run_dir, page):
    found = rollouts_in(page)
    assert 30 <= len(found) <= 60
    for step in ("1", "13", "24"):
        agents = [a["data-agent"] for a in found.values() if a["data-step"] == step]
        assert agents.count("policy") == 8
        assert (agents.count("selection"), agents.count("summary")) == (2, 1)
    text = (run_dir / "report.html").read_text()
    assert text.count("best reward") == 4
    assert text.count("worst reward") == 4
    assert "gave the skill fuse-rows" in text


def test_a_large_run_stays_readable(run_dir):
    for step in range(1, 25):
        path = run_dir / "rollouts" / f"step_{step}.jsonl.gz"
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        more = [{**row, "rollout": row.get("rollout", 0) + 10 * copy} for copy in range(8) for row in rows]
        path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in more).encode()))
    assert len(rollouts_in(page_of(run_dir))) <= 60


def test_a_later_turn_shows_only_what_its_prompt_adds(page):
    added = [text for text in page.pre if "<user> Result of attempt 1" in text]
    assert added
    assert not [text for text in added if "<system> Write ModelNew" in text]


def test_code_is_highlighted_and_unchanged(run_dir, page):
    assert any(a.get("class") == "kn" for tag, a in page.tags if tag == "span")
    rows = gzip.decompress((run_dir / "rollouts" / "step_1.jsonl.gz").read_bytes()).decode().splitlines()
    assert json.loads(rows[0])["code"] in page.pre


def test_filters_offer_what_is_there(page):
    selects = [a["data-filter"] for tag, a in page.tags if tag == "select"]
    assert selects == ["agent", "outcome", "step"]


@pytest.mark.parametrize(
    ("missing", "notice"),
    [
        ("grades", "Not graded yet."),
        ("metrics.jsonl", "No training steps yet."),
        ("skills", "No skill was verified yet."),
        ("rollouts", "No rollouts recorded."),
    ],
)
def test_a_missing_part_is_named(run_dir, missing, notice):
    (run_dir / missing).rename(run_dir.parent / "aside")
    page = page_of(run_dir)
    assert page.faults == []
    assert notice in (run_dir / "report.html").read_text()


def test_a_run_that_has_only_begun(tmp_path):
    (tmp_path / "config.yaml").write_text("seed: 0\n")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "policy/reward": 0.5}\n{"step": 2, "poli')
    page = page_of(tmp_path)
    assert page.faults == []
    assert sum(tag == "svg" for tag, _ in page.tags) == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metrics.jsonl", b"{}\nnonsense\n{}\n", r"metrics\.jsonl:2"),
        ("config.yaml", b"- a\n- b\n", r"config\.yaml: not a YAML mapping"),
        ("phases.json", b"[1]", r"phases\.json"),
        ("grades/rl/summary.json", b"{", r"rl/summary\.json"),
        ("rollouts/step_3.jsonl.gz", b"not gzip", r"step_3\.jsonl\.gz"),
    ],
)
def test_a_damaged_file_is_named(run_dir, name, content, message):
    (run_dir / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        write_report(run_dir)


def test_not_a_run_directory(tmp_path):
    with pytest.raises(UserError, match="not a run directory"):
        write_report(tmp_path)
    with pytest.raises(UserError, match="no such run directory"):
        write_report(tmp_path / "missing")


def test_the_command_prints_the_path(run_dir):
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [str(run_dir)])
    assert (result.exit_code, result.stdout.strip()) == (0, str(run_dir / "report.html"))
