"""One task's co-evolution: schemes, multi-turn episodes, triggers, verification, `Sample` rows."""

from ._types import Agent, Sample, Scheme, Trajectory, Turn

__all__ = ["Agent", "Sample", "Scheme", "Trajectory", "Turn"]
