"""A synthetic run directory: 24 steps, two tasks, three agents, two skills, two gradings, hostile model text."""

import gzip
import json
import random

import pytest

from davinci_kernel.grading import GradedTurn, GradeRow, summarise
from davinci_kernel.skills import Skill, SkillLibrary, SkillStatistics

INJECTION = "</pre></script><script>alert('owned')</script><img src=x onerror=alert(1)>"
WHY = {
    "fuse-rows": "Memory traffic dominates chains of elementwise operators, so a row should be read and written once.",
    "openmp-rows": "Independent outer iterations belong to different threads; schedule(static) keeps pages near their core.",
}
REFERENCE = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.softmax(x * 1.35, dim=-1)\n"
KERNEL = """import torch
from davinci_kernel.jit import load_cpp

K = load_cpp(r'''
extern "C" void f(const float* x, float* y, long rows, long columns) {
  #pragma omp parallel for
  for (long r = 0; r < rows; ++r) { /* one pass */ }
}
''')


class ModelNew(torch.nn.Module):
    def forward(self, x):  # %s
        y = torch.empty_like(x)
        K.f(x, y, x.shape[0], x.shape[1])
        return y
"""


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_step(run_dir, step, rows):
    (run_dir / "rollouts").mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run_dir / "rollouts" / f"step_{step}.jsonl.gz").write_bytes(gzip.compress(text.encode()))


def policy_rows(draw, step, task, scheme, rollout):
    """Two turns; the second prompt continues the first. The best rollout of step 12 is scheme 0, rollout 1."""
    rows, prompt = [], f"<system> Write ModelNew {INJECTION} <user> {task}"
    for turn in range(2):
        outcome = draw.choice(["CORRECT", "CORRECT", "WRONG_VALUE", "COMPILE_ERROR", "HACK"])
        speedup = round(0.6 + draw.random() * (1 + step / 8), 3) if outcome == "CORRECT" else None
        if (step, task, scheme, rollout, turn) == (12, "gen/train/0/1", 0, 1, 1):
            outcome, speedup = "CORRECT", 5.25
        answer = f"Use one pass.\n```python\n{KERNEL % f'{step}/{scheme}/{rollout}/{turn}'}```"
        verdict = {
            "outcome": outcome,
            "message": "" if speedup else "first mismatch at [0, 3]: 0.25 instead of 0.5",
            "speedup": speedup,
            "speedup_interval": [speedup - 0.05, speedup + 0.05] if speedup else None,
            "coverage": 0.97 if speedup else None,
            "hack": "torch-fallback" if outcome == "HACK" else None,
        }
        rows.append(
            {
                "agent": "policy",
                "task_id": task,
                "group": task,
                "scheme": scheme,
                "rollout": rollout,
                "turn": turn,
                "skills": ["fuse-rows"] if scheme == 0 and step > 12 else [],
                "prompt": prompt,
                "response": answer,
                "reward": (speedup or -1) + 0.5,
                "advantage": round(draw.uniform(-1, 1), 3),
                "kept": draw.random() > 0.1,
                "finish_reason": "stop",
                "verdict": verdict,
                "code": KERNEL % f"{step}/{scheme}/{rollout}/{turn}",
            }
        )
        prompt += f"{answer}<user> Result of attempt {turn + 1}: {outcome}"
    return rows


def single_row(agent, step, task, reward):
    return {
        "agent": agent,
        "task_id": task,
        "group": f"{task}#{agent}",
        "prompt": f"Skills for {task}",
        "response": f'{{"name": "{agent}", "arguments": {{"think": "{INJECTION}"}}}}',
        "reward": reward,
        "advantage": 0.25,
        "kept": True,
        "finish_reason": "stop",
        "verdict": None,
        "code": None,
    }


def metrics_row(draw, step):
    rise = step / 24
    library = sum(step >= s for s in (12, 18))
    return {
        "step": step,
        "policy/reward": -0.5 + 2 * rise + draw.gauss(0, 0.2),
        "policy/correct": min(1.0, 0.6 + 0.35 * rise + draw.gauss(0, 0.03)),
        "policy/compiled": min(1.0, 0.8 + 0.2 * rise),
        "policy/hack": 0.02,
        "policy/fast_1": min(1.0, 0.3 + 0.5 * rise + draw.gauss(0, 0.05)),
        "policy/speedup": 1.1 + rise + draw.gauss(0, 0.1),
        "selection/reward": 1 + rise,
        "summary/reward": rise if step >= 6 else None,
        "skills/library": library,
        "skills/proposed": 2 if step in (12, 18) else 0,
        "skills/verified": 1 if step in (12, 18) else 0,
        "skills/uplift": draw.gauss(0.4, 0.2) if step > 12 else None,
        "losses/policy": draw.gauss(0, 0.01),
        "time/generate": 1.0,
        "time/evaluate": 4.0,
        "time/update": 0.5,
    }


def graded(speedups):
    """Ten tasks, two samples; None is a wrong value."""
    rows = []
    for index, speedup in enumerate(speedups):
        outcome = "CORRECT" if speedup else "WRONG_VALUE"
        turn = GradedTurn(turn=0, outcome=outcome, compiled=True, speedup=speedup)
        rows.append(GradeRow(task_id=f"gen/heldout/0/{index // 2}", level=1, sample=index % 2, turns=(turn,)))
    return rows


@pytest.fixture
def run_dir(tmp_path):
    draw = random.Random(0)
    root = tmp_path / "quickstart"
    root.mkdir()
    (root / "config.yaml").write_text(
        "model_path: runs/quickstart/sft/model\nseed: 0\ndevice: cpu\ntasks:\n  source: generator\n"
        "rl:\n  steps: 24\n  batch_tasks: 2\n  learning_rate: 0.0003\nrollout:\n  backend: cpp\n  rollout_n: 2\n  max_turn: 2\n"
        "skill:\n  enable: true\n  k: 1\n"
    )
    (root / "phases.json").write_text(json.dumps({"cold_start": 95.2, "sft": 171.4, "grade_sft": 40.0, "rl": 257.1}))
    tasks = ["gen/train/0/1", "gen/train/0/2"]
    write_lines(
        root / "tasks.jsonl", [{"task_id": t, "name": "mul-softmax", "level": 2, "code": REFERENCE} for t in tasks]
    )
    write_lines(root / "metrics.jsonl", [metrics_row(draw, step) for step in range(1, 25)])
    for step in range(1, 25):
        rows = []
        for task in tasks:
            for scheme in (0, 1):
                for rollout in (0, 1):
                    rows += policy_rows(draw, step, task, scheme, rollout)
            rows.append(single_row("selection", step, task, 1.5))
        rows.append(single_row("summary", step, tasks[0], 2.5))
        write_step(root, step, rows)
    library = SkillLibrary(root / "skills")
    source = {"step": 12, "task_id": "gen/train/0/1", "scheme": 0, "rollout": 1, "best_speedup": 5.25}
    for step, name, provenance in ((12, "fuse-rows", source), (18, "openmp-rows", {"step": 999, "task_id": "gone"})):
        library.stage(
            Skill(
                name=name,
                description=f"Do it in {name}.",
                scope="general",
                tags=("fusion", "cache", "rows"),
                content=f"## Motivation\n{WHY[name]}\n## Key Idea\n{name} {INJECTION}\n## Example\nfor (...) {{}}",
                verify_speedup=2.1,
                provenance=provenance,
            )
        )
        library.flush(step)
    stats = SkillStatistics()
    for reward, null in ((2.0, 1.5), (2.5, 1.75), (1.0, 1.25)):
        stats.record_task(["fuse-rows", "openmp-rows"], [(["fuse-rows"], [reward, reward])], [null])
    stats.save(root / "skills" / "stats.json")
    moves = {
        "sft": [1.3, None, 0.8, 0.9, 1.1, None, 2.2, 0.7, 1.0, 1.25],
        "rl": [2.3, 2.1, 1.8, 0.9, 1.6, 1.4, 3.2, None, 2.0, 2.25],
    }
    for number, (label, speedups) in enumerate(moves.items()):
        rows = graded(speedups)
        write_lines(root / "grades" / label / "results.jsonl", [r.model_dump(mode="json") for r in rows])
        summary = summarise(rows, finished=f"2030-01-0{number + 1}T00:00:00+00:00").to_json()
        (root / "grades" / label / "summary.json").write_text(json.dumps(summary))
    return root
