"""A verdict as text for a model: deterministic, short, most important line first."""

from __future__ import annotations

from ._types import Outcome, Verdict


def feedback(verdict: Verdict, limit: int = 800) -> str:
    """What the policy reads after its turn, at most ``limit`` characters."""
    if verdict.outcome is Outcome.CORRECT:
        coverage = "" if verdict.coverage is None else f", coverage {verdict.coverage:.2f}"
        if verdict.speedup is None:
            why = "too noisy to time" if verdict.too_noisy else "not timed"
            return f"CORRECT: {why}{coverage}"[:limit]
        text = f"CORRECT: speedup {verdict.speedup:.2f}x{coverage}"
        if verdict.reference_ms is not None and verdict.kernel_ms is not None:
            text += f"\nreference {verdict.reference_ms:.2f} ms, kernel {verdict.kernel_ms:.2f} ms"
        return text[:limit]
    name = verdict.outcome.value + (f" ({verdict.hack})" if verdict.hack else "")
    return f"{name}: {verdict.message}"[:limit].rstrip()
