"""One graded episode: T turns, or sequential test-time scaling: several iterations of T turns each.

Within an iteration every turn sees the iteration's earlier ones. A new iteration starts from the task and the kept turns of
the whole history: the `keep` best by reward (ties: the earlier), or the last `keep`; in the order in which they were played.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from davinci_kernel.rollout import PolicyDialogue, Turn


class Scaling(BaseModel):
    """Sequential test-time scaling; one iteration is a plain multi-turn episode."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    iterations: int = Field(1, ge=1)
    """Iterations of `max_turn` turns."""
    keep: int = Field(4, ge=0)
    """Turns of the history that a new iteration sees."""
    keep_by: Literal["best", "last"] = "best"
    """Which ones."""


def kept_turns(turns: Sequence[Turn], scaling: Scaling) -> list[Turn]:
    """The history that a new iteration sees, in the order of play."""
    if scaling.keep_by == "last":
        return list(turns[max(0, len(turns) - scaling.keep) :])
    best = sorted(turns, key=lambda turn: (-(turn.reward if turn.reward is not None else -math.inf), turn.index))
    return sorted(best[: scaling.keep], key=lambda turn: turn.index)


async def play_episode(
    dialogue: PolicyDialogue,
    scaling: Scaling,
    max_turn: int,
    recorded: Mapping[int, Turn],
    on_turn: Callable[[Turn], None],
) -> list[Turn]:
    """Play `scaling.iterations` × `max_turn` turns; recorded ones (by index) are taken instead of played.

    A prompt that has become too long ends its iteration. A verdict that is not the candidate's fault ends the episode.

    Args:
        on_turn: called with every newly played turn as soon as it is judged.
    """
    turns: list[Turn] = []
    for iteration in range(scaling.iterations):
        if iteration:
            dialogue.restart(kept_turns(turns, scaling))
        for index in range(iteration * max_turn, (iteration + 1) * max_turn):
            turn = recorded.get(index)
            if turn is None:
                turn = await dialogue.play(index)
                if turn is None:
                    break
                on_turn(turn)
            turns.append(turn)
            dialogue.append(turn)
            if not turn.verdict.outcome.is_candidates_fault:
                return turns
    return turns
