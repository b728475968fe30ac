"""Checkpoints that resume exactly: `checkpoints/step_N/` holds an HF model and the trainer's state, renamed into place."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch

STATE = "trainer.pt"


def save_checkpoint(run_dir: Path, step: int, model: Any, tokenizer: Any, state: dict[str, Any], keep: int) -> Path:
    """Write `checkpoints/step_<step>` and delete all but the newest `keep` ones."""
    root = run_dir / "checkpoints"
    target, partial = root / f"step_{step}", root / f"step_{step}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    torch.save(state | {"step": step}, partial / STATE)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    for _, old in _complete(root)[:-keep]:
        shutil.rmtree(old)
    return target


def newest_checkpoint(run_dir: Path) -> Path | None:
    """The complete checkpoint with the highest step."""
    found = _complete(run_dir / "checkpoints")
    return found[-1][1] if found else None


def load_state(checkpoint: Path) -> dict[str, Any]:
    return torch.load(checkpoint / STATE, map_location="cpu", weights_only=True)


def forget_after(run_dir: Path, step: int) -> None:
    """Remove what an interrupted run wrote after `step`: metrics, rollouts, snapshots (a cut-off line too)."""
    metrics = run_dir / "metrics.jsonl"
    if metrics.exists():
        lines = [line for line in metrics.read_text().splitlines() if line.endswith("}")]
        partial = metrics.with_name("metrics.jsonl.partial")
        partial.write_text("".join(f"{line}\n" for line in lines if json.loads(line)["step"] <= step))
        os.replace(partial, metrics)
    for pattern, suffix in (("rollouts/step_*.jsonl.gz", ".jsonl.gz"), ("skills/global_step_*.jsonl", ".jsonl")):
        for path in run_dir.glob(pattern):
            if int(path.name.removesuffix(suffix).rpartition("_")[2]) > step:
                path.unlink()


def _complete(root: Path) -> list[tuple[int, Path]]:
    steps = [(path.name.removeprefix("step_"), path) for path in root.glob("step_*") if (path / STATE).exists()]
    return sorted((int(number), path) for number, path in steps if number.isdigit())
