"""The text a model reads."""

from davinci_kernel.gym import Outcome, Verdict, feedback


def test_correct():
    verdict = Verdict(
        outcome=Outcome.CORRECT, speedup=1.834, coverage=0.968, reference_ms=2.0, kernel_ms=1.0912, compiled=True
    )
    assert feedback(verdict) == "CORRECT: speedup 1.83x, coverage 0.97\nreference 2.00 ms, kernel 1.09 ms"


def test_too_noisy_has_no_number():
    verdict = Verdict(outcome=Outcome.CORRECT, too_noisy=True, coverage=1.0)
    assert feedback(verdict) == "CORRECT: too noisy to time, coverage 1.00"


def test_hack_names_its_class():
    verdict = Verdict(outcome=Outcome.HACK, hack="ghost", message="they compute nothing")
    assert feedback(verdict) == "HACK (ghost): they compute nothing"


def test_bounded():
    verdict = Verdict(outcome=Outcome.COMPILE_ERROR, message="x" * 5000)
    assert len(feedback(verdict, limit=100)) == 100
    assert feedback(verdict, limit=100).startswith("COMPILE_ERROR: xxx")
