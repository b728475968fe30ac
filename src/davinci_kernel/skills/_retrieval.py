"""`LibraryView`: a frozen set of skills and BM25 retrieval over it."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Iterable, Sequence
from functools import cached_property

import bm25s
import numpy as np

from ._types import Skill

# bm25s sets its logger to DEBUG and would report every index to a program that logs at all.
logging.getLogger("bm25s").setLevel(logging.WARNING)
_SEPARATORS = re.compile(r"[_\-/]+")


def tokenize(texts: Iterable[str]) -> list[list[str]]:
    """Lower-case words of two characters or more, without English stop words; ``_ - /`` separate words."""
    separated = [_SEPARATORS.sub(" ", text) for text in texts]
    return bm25s.tokenize(separated, stopwords="en", return_ids=False, show_progress=False)


class LibraryView:
    """Skills that do not change: what workers retrieve from while the library grows elsewhere."""

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self.skills: tuple[Skill, ...] = tuple(skills)

    def __len__(self) -> int:
        return len(self.skills)

    def get(self, name: str) -> Skill | None:
        """The skill of exactly this name, if there is one."""
        return next((skill for skill in self.skills if skill.name == name), None)

    def scores(self, query: str) -> np.ndarray:
        """BM25 score (float32, one per skill, 0 without a common word) over name, description, tags and content."""
        words = tokenize([query])[0]
        if self._index is None or not words:
            return np.zeros(len(self.skills), dtype=np.float32)
        return np.asarray(self._index.get_scores(words), dtype=np.float32)

    def recall(self, query: str, k: int = 20, fallback: int = 30, seed: int = 0) -> list[Skill]:
        """The `k` best skills for a task text, best first; equal scores in library order.

        Skills with score 0 are not recalled. When none is left, `fallback` skills sampled with `seed` are returned
        instead, in library order.
        """
        scores = self.scores(query)
        best = [int(i) for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]
        if best:
            return [self.skills[i] for i in best]
        sampled = random.Random(seed).sample(range(len(self.skills)), min(fallback, len(self.skills)))
        return [self.skills[i] for i in sorted(sampled)]

    @cached_property
    def _index(self) -> bm25s.BM25 | None:
        documents = tokenize(_searchable(self.skills))
        if not any(documents):
            return None
        index = bm25s.BM25()
        index.index(documents, show_progress=False)
        return index


def _searchable(skills: Sequence[Skill]) -> list[str]:
    return ["\n".join((s.name, s.description, " ".join(s.tags), s.content)) for s in skills]
