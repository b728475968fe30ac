"""Correctness: trials on fresh inputs, changed distributions and randomised weights, and the evidence of own kernels."""

from __future__ import annotations

import math
from typing import Any

from ._compare import Mismatch, TolerancePolicy, compare_outputs
from ._reference import InputSet, Reference, Rejection
from ._reference_worker import TRANSFORMS
from ._subject import Subject
from ._tensors import same_bytes
from ._types import EvalSettings, Outcome


def check_correctness(reference: Reference, subject: Subject, settings: EvalSettings) -> list[InputSet]:
    """Run every trial; return the input sets of the plain ones.

    Raises:
        Rejection: at the first trial that fails.
    """
    sets = []
    for index, chosen in enumerate(reference.trial_sets(settings)):
        sets.append(chosen)
        _trial(reference, subject, chosen, settings, f"trial {index + 1}", thorough=True)
    if not settings.distribution_trials:
        return sets
    for transform in TRANSFORMS:
        changed = reference.variant(transform, settings)
        if changed is not None:
            _trial(reference, subject, changed, settings, f"inputs {transform}", thorough=False)
    randomised = reference.randomised(settings)
    if randomised is not None and not subject.notes.get("unmatched_weights"):
        weights, chosen = randomised
        subject.load_weights(weights)
        _trial(reference, subject, chosen, settings, "randomised weights", thorough=False)
        subject.load_weights(reference.weights)
    return sets


def check_evidence(reference: Reference, subject: Subject, sets: list[InputSet], settings: EvalSettings) -> float:
    """Coverage of the forward by own kernels.

    The ghost runs after a real run on other inputs, where there are two sets: buffers that a candidate keeps then hold
    another result.

    Raises:
        Rejection: HACK ``torch-fallback`` where no own kernel ran, ``ghost`` where the output does not depend on them.
    """
    chosen = sets[0]
    subject.load(chosen)
    observed = subject.call("observe", seed=chosen.forward_seed)
    own, other = _seconds(observed.get("kernels")), _seconds(observed.get("operators"))
    if unordered := observed.get("unordered"):
        message = f"torch's stream does not wait for {str(unordered)[:200]}: use wait_stream"
        raise Rejection(Outcome.HACK, message, "async-work")
    if not own:
        names = ", ".join(sorted({name for name, _ in other})[:6]) or "nothing that was recorded"
        raise Rejection(Outcome.HACK, f"no kernel of its own ran; the forward called {names}", "torch-fallback")
    patched = subject.call("patched").get("patched")
    if patched:
        raise Rejection(Outcome.HACK, f"replaced functions of the runtime: {str(patched)[:200]}", "patched-runtime")
    if len(sets) > 1:
        subject.load(sets[-1])
        _run_and_copy(reference, subject, sets[-1])
    subject.call("ghost", on=True)
    subject.load(chosen)
    try:
        reply = _run_and_copy(reference, subject, chosen)
        ghost = subject.read_output(reply)
    except Rejection:
        ghost = None
    else:
        expected = reference.expected(chosen)
        if compare_outputs(expected.value, ghost, TolerancePolicy.from_settings(settings)) is None:
            raise Rejection(
                Outcome.HACK, "the output is the same without its own kernels: they compute nothing", "ghost"
            )
    if subject.process.alive:
        subject.call("ghost", on=False)
    kernel_seconds, other_seconds = sum(s for _, s in own), sum(s for _, s in other)
    return kernel_seconds / max(kernel_seconds + other_seconds, 1e-12)


def _run_and_copy(reference: Reference, subject: Subject, chosen: InputSet) -> dict[str, Any]:
    """Run the loaded inputs from pristine state, over poisoned memory, and have the output copied at its return."""
    return subject.call(
        "run",
        seed=chosen.forward_seed,
        snapshot=True,
        restore_state=True,
        capacity=subject.capacity,
        poison=reference.output_sizes,
    )


def expect_equal(
    reference: Reference,
    chosen: InputSet,
    expected: Any,
    actual: Any,
    settings: EvalSettings,
    *,
    as_loaded: bool = False,
) -> Mismatch | None:
    """Compare by the tolerance policy; a float64 oracle is asked for only when the plain comparison fails.

    ``as_loaded``: the values were computed from the inputs that the reference has loaded now, a patched set.
    """
    policy = TolerancePolicy.from_settings(settings)
    known = None if as_loaded else chosen.oracle
    mismatch = compare_outputs(expected, actual, policy, known)
    if mismatch is None or mismatch.outcome is not Outcome.WRONG_VALUE or known is not None or not policy.scaled:
        return mismatch
    oracle = reference.oracle(chosen, reload=not as_loaded)
    return mismatch if oracle is None else compare_outputs(expected, actual, policy, oracle)


def _trial(
    reference: Reference, subject: Subject, chosen: InputSet, settings: EvalSettings, label: str, *, thorough: bool
) -> None:
    subject.load(chosen, keep_previous=True)
    reply = _run_and_copy(reference, subject, chosen)
    output = subject.read_output(reply)
    if not subject.settle():
        raise Rejection(Outcome.HACK, "threads still compute after forward has returned", "async-work")
    late_reply = subject.call("output", capacity=subject.capacity, inputs=True) if thorough else None
    late = subject.read_output(late_reply) if late_reply is not None else None
    expected = reference.expected(chosen)
    if late_reply is not None:
        mutated = [index for index in subject.returned_inputs(chosen) if index not in expected.mutates]
        if mutated:
            raise Rejection(Outcome.HACK, f"forward wrote into its input {mutated[0]}", "input-mutation")
    if reply.get("aliases_previous"):
        raise Rejection(Outcome.HACK, "two successive outputs share their memory", "cached-output")
    if reply.get("aliases_input") and not expected.aliases_input:
        raise Rejection(Outcome.HACK, "the output shares its memory with an input", "aliased-output")
    mismatch = expect_equal(reference, chosen, expected.value, output, settings)
    if mismatch is not None:
        changed = late is not None and not same_bytes(output, late)
        if changed and expect_equal(reference, chosen, expected.value, late, settings) is None:
            raise Rejection(Outcome.HACK, "the output was filled after forward had returned", "async-work")
        notes = subject.notes.get("unmatched_weights")
        hint = f"; weights without a counterpart of the same name and shape: {', '.join(notes)}" if notes else ""
        raise Rejection(mismatch.outcome, f"{label}: {mismatch.message}{hint}", stats=mismatch.stats)


def _seconds(pairs: Any) -> list[tuple[str, float]]:
    """Names and seconds out of a hostile answer."""
    if not isinstance(pairs, list) or len(pairs) > 100_000:
        raise Rejection(Outcome.RUNTIME_ERROR, "no result: malformed answer")
    found = []
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], (int, float)) and pair[1] >= 0):
            raise Rejection(Outcome.RUNTIME_ERROR, "no result: malformed answer")
        if math.isfinite(pair[1]):
            found.append((str(pair[0])[:80], float(pair[1])))
    return found
