"""The skill library: snapshots, retrieval, statistics."""

from ._types import Skill

__all__ = ["Skill"]
