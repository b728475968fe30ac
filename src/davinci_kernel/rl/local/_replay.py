"""Cold-start rows mixed into every step, so that RL does not destroy the prompts it does not sample."""

from __future__ import annotations

import random
from typing import Any

from davinci_kernel.config import TrainConfig
from davinci_kernel.errors import UserError
from davinci_kernel.llm import read_rows, render_with_mask

from ._update import Encoded


class Replay:
    """`rl.sft_replay_rows` rows of `sft_data` for each step, drawn by (seed, step).

    Raises:
        UserError: no such file, not parquet, or no column `messages`.
    """

    def __init__(self, config: TrainConfig, tokenizer: Any) -> None:
        self._seed, self._count, self._tokenizer = config.seed, config.rl.sft_replay_rows, tokenizer
        if self._count and not config.sft_data:
            raise UserError("sft_data: empty; rl.sft_replay_rows needs a parquet file of cold-start rows")
        self._rows = read_rows(config.sft_data) if self._count else []

    def rows(self, step: int) -> list[Encoded]:
        """The step's rows as token ids and assistant masks; a row without assistant tokens has nothing to teach."""
        rng = random.Random(f"replay/{self._seed}/{step}")
        chosen = rng.sample(self._rows, min(self._count, len(self._rows)))
        encoded = [
            render_with_mask(self._tokenizer, row.messages, row.tools or None, row.enable_thinking) for row in chosen
        ]
        return [(ids, mask) for ids, mask in encoded if any(mask)]
