"""Supervised fine-tuning on assistant tokens, in one process on CPU or GPU.

    davinci sft train configs/sft.yaml          resumes an interrupted run by itself

Rows are tokenised once, shuffled into batches (in an order that depends on seed and epoch only), and each batch is sorted by
length and split into micro-batches by padded tokens. The loss is the mean negative log-likelihood over the assistant tokens of the
whole batch. Left out: sequence packing, several processes.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, AutoTokenizer

from davinci_kernel.config import SFTConfig, dump_config
from davinci_kernel.errors import UserError
from davinci_kernel.llm import Row, read_rows, render_with_mask
from davinci_kernel.rl import micro_batches as micro_batches_by_length

IGNORED = -100


@dataclass(frozen=True)
class Encoded:
    """One row: token ids and, per token, whether an assistant wrote it."""

    kind: str
    ids: tuple[int, ...]
    mask: tuple[int, ...]


def encode_rows(tokenizer, rows: list[Row], max_length: int) -> tuple[list[Encoded], int]:
    """Tokenise rows; rows longer than `max_length` tokens are left out and counted."""
    encoded, too_long = [], 0
    for row in rows:
        ids, mask = render_with_mask(tokenizer, row.messages, row.tools or None, row.enable_thinking)
        if len(ids) > max_length:
            too_long += 1
        else:
            encoded.append(Encoded(row.kind, tuple(ids), tuple(mask)))
    return encoded, too_long


def batches(rows: list[Encoded], batch_size: int, seed: int, epoch: int) -> list[list[Encoded]]:
    """An epoch's shuffled batches. Every batch is a sample of all kinds: lengths are sorted within a batch only."""
    order = random.Random(f"sft/{seed}/{epoch}").sample(rows, len(rows))
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


def micro_batches(batch: list[Encoded], max_tokens: int) -> Iterator[list[Encoded]]:
    """Parts of a batch with at most `max_tokens` padded tokens each (a longer single row stands alone)."""
    for part in micro_batches_by_length([len(row.ids) for row in batch], max_tokens):
        yield [batch[i] for i in part]


def token_nll(model, rows: list[Encoded], device: torch.device) -> torch.Tensor:
    """Negative log-likelihoods of the assistant tokens, float32, concatenated over rows: shape (N,)."""
    width = max(len(r.ids) for r in rows)
    ids_BT = torch.full((len(rows), width), 0, dtype=torch.long)
    targets_BT = torch.full((len(rows), width), IGNORED, dtype=torch.long)
    for i, row in enumerate(rows):
        n = len(row.ids)
        ids = torch.tensor(row.ids)
        ids_BT[i, :n] = ids
        targets_BT[i, : n - 1] = torch.where(torch.tensor(row.mask[1:], dtype=torch.bool), ids[1:], IGNORED)
    ids_BT, targets_BT = ids_BT.to(device), targets_BT.to(device)
    # Padding is to the right of a causal model's tokens, so no attention mask is needed.
    hidden_BTD = model.get_decoder()(input_ids=ids_BT, use_cache=False).last_hidden_state
    keep = targets_BT != IGNORED
    logits_NV = model.get_output_embeddings()(hidden_BTD[keep]).float()
    return F.cross_entropy(logits_NV, targets_BT[keep], reduction="none")


@torch.no_grad()
def validation_loss(model, rows: list[Encoded], max_tokens: int, device: torch.device) -> dict[str, float]:
    """Mean negative log-likelihood per assistant token, per row kind and over all (`all`)."""
    model.eval()
    sums: dict[str, tuple[float, int]] = {}
    for kind in sorted({r.kind for r in rows}):
        total, count = 0.0, 0
        for part in micro_batches([r for r in rows if r.kind == kind], max_tokens):
            nll = token_nll(model, part, device)
            total, count = total + nll.sum().item(), count + nll.numel()
        sums[kind] = (total, count)
    model.train()
    losses = {kind: total / max(count, 1) for kind, (total, count) in sums.items()}
    losses["all"] = sum(t for t, _ in sums.values()) / max(sum(c for _, c in sums.values()), 1)
    return losses


def learning_rate(step: int, steps: int, config: SFTConfig) -> float:
    """Linear warm-up, then cosine decay to a tenth of the peak."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, steps - config.warmup_steps)
    return config.learning_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done))))


def resolve_device(name: str) -> torch.device:
    """`auto` is CUDA where there is a device."""
    return torch.device("cuda" if name == "auto" and torch.cuda.is_available() else "cpu" if name == "auto" else name)


def train(config: SFTConfig, *, on_step: Callable[[int, int, dict[str, float]], None] | None = None) -> Path:
    """Run (or resume) supervised fine-tuning; returns the directory of the trained model in HF format.

    Writes `config.yaml`, `metrics.jsonl`, `resume.pt` while running, and `model/` at the end.

    Raises:
        UserError: unreadable data, no rows that fit, or a run directory of a different configuration.
    """
    run_dir, final = Path(config.run_dir), Path(config.run_dir) / "model"
    if (final / "config.json").exists():
        return final
    device = resolve_device(config.device)
    torch.manual_seed(config.seed)
    model: Any = AutoModelForCausalLM.from_pretrained(config.model_path, dtype=getattr(torch, config.dtype))
    model.to(device)
    tokenizer = AutoTokenizer.from_pretrained(config.model_path)
    rows, too_long = encode_rows(tokenizer, read_rows(config.data), config.max_length)
    if not rows:
        raise UserError(
            f"{config.data}: no row fits into max_length={config.max_length} tokens ({too_long} are longer)"
        )
    random.Random(f"split/{config.seed}").shuffle(rows)
    held_out = rows[: int(len(rows) * config.validation_fraction)]
    rows = rows[len(held_out) :]
    per_epoch = math.ceil(len(rows) / config.batch_size)
    steps = config.max_steps or math.ceil(per_epoch * config.epochs)

    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=config.learning_rate,
        betas=(0.9, config.beta2),
        weight_decay=config.weight_decay,
        fused=True,
    )
    run_dir.mkdir(parents=True, exist_ok=True)
    start = _resume(run_dir, config, model, optimizer)
    dump_config(config, run_dir / "config.yaml")
    model.train()
    schedule: list[list[Encoded]] = []
    with (run_dir / "metrics.jsonl").open("a") as metrics_file:
        for step in range(start, steps):
            if not schedule or step % per_epoch == 0:
                schedule = batches(rows, config.batch_size, config.seed, step // per_epoch)
            metrics = _step(
                model, optimizer, schedule[step % per_epoch], learning_rate(step, steps, config), config, device
            )
            last = step + 1 == steps
            if held_out and (last or (step + 1) % config.save_freq == 0):
                losses = validation_loss(model, held_out, config.micro_batch_tokens, device)
                metrics |= {f"validation/{kind}": value for kind, value in losses.items()}
            metrics_file.write(json.dumps({"step": step + 1, **metrics}) + "\n")
            metrics_file.flush()
            if on_step:
                on_step(step + 1, steps, metrics)
            if not last and (step + 1) % config.save_freq == 0:
                _save(run_dir, config, step + 1, model, optimizer)
    model.eval()
    partial = run_dir / "model.partial"
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.rename(final)
    (run_dir / "resume.pt").unlink(missing_ok=True)
    return final


def _step(
    model, optimizer, batch: list[Encoded], lr: float, config: SFTConfig, device: torch.device
) -> dict[str, float]:
    started = time.perf_counter()
    for group in optimizer.param_groups:
        group["lr"] = lr
    targets = max(1, sum(sum(row.mask[1:]) for row in batch))
    total = 0.0
    for part in micro_batches(batch, config.micro_batch_tokens):
        loss = token_nll(model, part, device).sum() / targets
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip).item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    tokens = sum(len(row.ids) for row in batch)
    seconds = time.perf_counter() - started
    return {
        "losses/nll": total,
        "optim/grad_norm": norm,
        "optim/lr": lr,
        "tokens/trained": tokens,
        "time/step": seconds,
    }


def _save(run_dir: Path, config: SFTConfig, step: int, model, optimizer) -> None:
    state = {
        "step": step,
        "config": config.model_dump_json(),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng": torch.get_rng_state(),
    }
    torch.save(state, run_dir / "resume.pt.partial")
    os.replace(run_dir / "resume.pt.partial", run_dir / "resume.pt")


def _resume(run_dir: Path, config: SFTConfig, model, optimizer) -> int:
    """Restore the newest state of this run; returns the steps already done. Metrics after it are cut off."""
    path = run_dir / "resume.pt"
    done = 0
    if path.exists():
        state = torch.load(path, map_location="cpu", weights_only=True)
        if state["config"] != config.model_dump_json():
            raise UserError(f"{run_dir}: holds an interrupted run of a different configuration; choose another run_dir")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        done = state["step"]
    metrics = run_dir / "metrics.jsonl"
    if metrics.exists():
        kept = [
            line for line in metrics.read_text().splitlines() if line.endswith("}") and json.loads(line)["step"] <= done
        ]
        metrics.write_text("".join(f"{line}\n" for line in kept))
    return done
