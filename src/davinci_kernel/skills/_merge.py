"""Adding skills to a library without piling up copies: near-duplicates by content merge, names stay unique."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ._types import Skill

_WORD = re.compile(r"[^\W\d_]+")
_HEADINGS = re.compile(r"^## (?:Motivation|Key Idea|Example)[ \t]*$", re.MULTILINE)
_SEPARATORS = re.compile(r"[\s_\-/]+")


def content_similarity(a: str, b: str) -> float:
    """Jaccard index of the words of two skill bodies in [0, 1].

    Numbers are ignored (the same idea with another tile size is the same idea), and so are the section headings that
    all bodies share. A body without words resembles nothing.
    """
    return _jaccard(_words(a), _words(b))


def add_skills(
    library: Sequence[Skill], new: Sequence[Skill], merge_similarity: float
) -> tuple[tuple[Skill, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Add `new` to `library`, whatever the order in which rollouts happened to stage them: best verified first.

    Returns:
        The grown library, the names added, and (proposed name, name of the skill it was merged into) pairs.
    """
    skills = list(library)
    words = [_words(skill.content) for skill in skills]
    added: list[str] = []
    merged: list[tuple[str, str]] = []
    for skill in sorted(new, key=lambda s: (-_verified(s), s.name, s.content)):
        own = _words(skill.content)
        similarity = [_jaccard(own, other) for other in words]
        highest = max(similarity, default=0.0)
        if similarity and highest >= merge_similarity:
            nearest = similarity.index(highest)
            merged.append((skill.name, skills[nearest].name))
            skills[nearest] = _merge(skills[nearest], skill)
            words[nearest] = _words(skills[nearest].content)
            continue
        unique = skill.model_copy(update={"name": unique_name(skill.name, {s.name for s in skills})})
        skills.append(unique)
        words.append(own)
        added.append(unique.name)
    return tuple(skills), tuple(added), tuple(merged)


def unique_name(name: str, taken: Collection[str]) -> str:
    """`name`, or ``name_2``, ``name_3`` ... Names that differ in case or separators only count as equal."""
    normal = {_normal(other) for other in taken}
    number, candidate = 1, name
    while _normal(candidate) in normal:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _words(content: str) -> set[str]:
    return set(_WORD.findall(_HEADINGS.sub("", content).lower()))


def _jaccard(a: set[str], b: set[str]) -> float:
    common = len(a & b)
    return common / (len(a) + len(b) - common) if a and b else 0.0


def _merge(old: Skill, new: Skill) -> Skill:
    """The better verified of the two under the old name, so that its statistics go on; the other in its provenance."""
    kept, dropped = (new, old) if _verified(new) > _verified(old) else (old, new)
    history = [*kept.provenance.get("merged", ()), *dropped.provenance.get("merged", ())]
    origin = {key: value for key, value in dropped.provenance.items() if key != "merged"}
    history.append({"name": dropped.name, "verify_speedup": dropped.verify_speedup, "provenance": origin})
    return kept.model_copy(update={"name": old.name, "provenance": {**kept.provenance, "merged": history}})


def _verified(skill: Skill) -> float:
    return float("-inf") if skill.verify_speedup is None else skill.verify_speedup


def _normal(name: str) -> str:
    return _SEPARATORS.sub(" ", name).strip().lower()
