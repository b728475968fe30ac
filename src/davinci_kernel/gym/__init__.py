"""KernelGYM: compile, isolate, check, guard and time candidate kernels."""

from ._types import Backend, Candidate, EvalSettings, Gym, Outcome, Verdict

__all__ = ["Backend", "Candidate", "EvalSettings", "Gym", "Outcome", "Verdict"]
