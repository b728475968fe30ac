"""Cold-start rows mixed into every step, so that RL does not destroy the prompts it does not sample."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from davinci_kernel.config import TrainConfig
from davinci_kernel.errors import UserError
from davinci_kernel.llm import render_with_mask

from ._update import Encoded


class Replay:
    """`rl.sft_replay_rows` rows of `sft_data` for each step, drawn by (seed, step).

    Raises:
        UserError: no such file, not parquet, or no column `messages`.
    """

    def __init__(self, config: TrainConfig, tokenizer: Any) -> None:
        self._seed, self._count, self._tokenizer = config.seed, config.rl.sft_replay_rows, tokenizer
        self._rows = _read(config.sft_data) if self._count else []

    def rows(self, step: int) -> list[Encoded]:
        """The step's rows as token ids and assistant masks; a row without assistant tokens has nothing to teach."""
        rng = random.Random(f"replay/{self._seed}/{step}")
        chosen = rng.sample(self._rows, min(self._count, len(self._rows)))
        encoded = [
            render_with_mask(self._tokenizer, _decoded(row["messages"]), _decoded(row.get("tools")) or None)
            for row in chosen
        ]
        return [(ids, mask) for ids, mask in encoded if any(mask)]


def _read(path: str) -> list[dict[str, Any]]:
    if not Path(path).is_file():
        raise UserError(f"sft_data: {path or '(empty)'}: no such file; rl.sft_replay_rows needs one")
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise UserError(f"sft_data: {path}: not a parquet file ({str(error).splitlines()[0]})") from None
    if "messages" not in table.column_names:
        raise UserError(f"sft_data: {path}: no column `messages`; it has {', '.join(table.column_names)}")
    return table.select([name for name in ("messages", "tools") if name in table.column_names]).to_pylist()


def _decoded(value: Any) -> Any:
    """Messages and tools are published as JSON strings and as nested lists; those carry absent keys as None."""
    if isinstance(value, str):
        return json.loads(value) if value else None
    return [{key: item for key, item in entry.items() if item is not None} for entry in value or ()]
