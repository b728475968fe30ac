"""The skill library: snapshots, retrieval, statistics."""

from ._library import FlushReport, SkillLibrary, read_snapshot, snapshots
from ._merge import content_similarity
from ._retrieval import LibraryView
from ._statistics import SkillStatistics, SkillStats
from ._types import Skill

__all__ = [
    "FlushReport",
    "LibraryView",
    "Skill",
    "SkillLibrary",
    "SkillStatistics",
    "SkillStats",
    "content_similarity",
    "read_snapshot",
    "snapshots",
]
