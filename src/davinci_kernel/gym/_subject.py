"""A candidate's process seen by the judge: every fault of it becomes a `Rejection`, and nothing it says is believed."""

from __future__ import annotations

from typing import Any

import torch

from ._device import DeviceName
from ._processes import ForkClient, WorkerFailed, WorkerGone, WorkerProcess, wait_idle
from ._reference import InputSet, Reference, Rejection, Weights
from ._tensors import BadDescription, Region, nbytes_of, restore, tensor_nodes
from ._types import Candidate, EvalSettings, Outcome

_START_SECONDS = 120.0
"""For a worker to come up: a CUDA context waits while another process keeps the device busy."""


class Subject:
    """One forked candidate process: `start` imports, `build` constructs, then `load`/`run`/`output`."""

    def __init__(
        self,
        client: ForkClient,
        candidate: Candidate,
        entry_point: str,
        settings: EvalSettings,
        threads: int,
        scratch: str,
        device: DeviceName = "cpu",
        interpret: bool = False,
    ):
        self.candidate, self.settings, self.class_name = candidate, settings, f"{entry_point}New"
        memory = int(settings.memory_limit_gb * (1 << 30))
        self.device, self.interpret = device, interpret
        self.process: WorkerProcess = client.fork(
            "candidate", scratch, memory_bytes=memory, threads=threads, device=device
        )
        self.mapped: set[str] = set()
        self.result: Region | None = None
        self.capacity = 0
        self.notes: dict[str, Any] = {}

    def start(self) -> None:
        """Import the candidate; a failure is a COMPILE_ERROR.

        Raises:
            WorkerGone: the worker ended before it had seen any of the candidate's code: our fault, not the candidate's.
        """
        self.process.call("hello", _START_SECONDS)
        try:
            self.process.call(
                "import",
                self.settings.compile_timeout,
                code=self.candidate.code,
                class_name=self.class_name,
                interpret=self.interpret,
            )
        except WorkerFailed as error:
            outcome = Outcome.RUNTIME_ERROR if error.kind == "memory" else Outcome.COMPILE_ERROR
            raise Rejection(outcome, str(error)) from None
        except WorkerGone as error:
            if error.killed_for_time:
                limit = self.settings.compile_timeout
                raise Rejection(Outcome.TIMEOUT, f"importing and compiling took longer than {limit:g} s") from None
            raise Rejection(Outcome.RUNTIME_ERROR, f"while importing, {error.reason}") from None

    def build(self, reference: Reference) -> None:
        """Construct the model with the reference's init inputs and weights, and give it its output region."""
        held = reference.weights
        reply = self.call(
            "build",
            fds=[held.region.fd],
            size=held.region.size,
            init=held.init,
            weights=held.weights,
            seed=reference.init_seed,
            class_name=self.class_name,
        )
        self._note_weights(reply)
        input_bytes = reference.set_bytes - reference.output_bytes
        self.capacity = 2 * reference.output_bytes + (64 << 10)
        self.result = Region.create(self.capacity + input_bytes + (64 << 10))
        self.call("result", fds=[self.result.fd], size=self.result.size)

    def load_weights(self, weights: Weights) -> None:
        self.call("weights", fds=[weights.region.fd], size=weights.region.size, weights=weights.weights)

    def map(self, chosen: InputSet) -> None:
        if chosen.name not in self.mapped:
            region = chosen.region
            self.call("map", fds=[region.fd], name=chosen.name, size=region.size, description=chosen.description)
            self.mapped.add(chosen.name)

    def load(self, chosen: InputSet, **fields: Any) -> None:
        self.map(chosen)
        self.call("load", name=chosen.name, **fields)

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        """One request within the run timeout."""
        try:
            return self.process.call(op, self.settings.run_timeout, **fields)
        except WorkerFailed as error:
            outcome = Outcome.COMPILE_ERROR if error.kind == "compile" else Outcome.RUNTIME_ERROR
            raise Rejection(outcome, str(error)) from None
        except WorkerGone as error:
            if error.killed_for_time:
                raise Rejection(Outcome.TIMEOUT, f"no result within {self.settings.run_timeout:g} s") from None
            raise Rejection(Outcome.RUNTIME_ERROR, f"no result: {error.reason}") from None

    def cpu_seconds(self) -> float:
        try:
            return self.process.cpu_seconds()
        except WorkerGone as error:
            raise Rejection(Outcome.RUNTIME_ERROR, f"no result: {error.reason}") from None

    def settle(self) -> bool:
        """Wait until the process computes nothing; False if it goes on."""
        try:
            return wait_idle(self.process)
        except WorkerGone as error:
            raise Rejection(Outcome.RUNTIME_ERROR, f"no result: {error.reason}") from None

    def read_output(self, reply: dict[str, Any]) -> Any:
        """The output that a reply describes, copied out of the candidate's reach.

        Raises:
            Rejection: it is no value that a reference could return.
        """
        assert self.result is not None
        description = reply.get("description")
        if not isinstance(description, dict):
            raise Rejection(Outcome.RUNTIME_ERROR, "no result: malformed answer")
        if reply.get("too_large"):
            raise Rejection(Outcome.WRONG_SHAPE, f"the output is {_shapes(description)}, larger than the reference's")
        try:
            value = restore(description, self.result)
            foreign = [node for node in tensor_nodes(description) if node.get("type") not in ("Tensor", "Parameter")]
            devices = [node for node in tensor_nodes(description) if node.get("device") != self.device]
        except (BadDescription, AttributeError) as error:
            raise Rejection(Outcome.WRONG_TYPE, f"the output: {error}") from None
        if foreign:
            kind = str(foreign[0].get("type"))[:100]
            raise Rejection(Outcome.WRONG_TYPE, f"the output is a {kind}, expected a plain torch.Tensor")
        if devices:
            raise Rejection(
                Outcome.WRONG_TYPE, f"the output is on {str(devices[0].get('device'))[:20]}, expected {self.device}"
            )
        return value

    def returned_inputs(self, chosen: InputSet) -> list[int]:
        """Indices of input tensors whose bytes the candidate changed, after ``output`` with ``inputs``."""
        assert self.result is not None
        changed, offset = [], self.capacity
        for index, node in enumerate(tensor_nodes(chosen.description)):
            nbytes = nbytes_of(node)
            if not torch.equal(self.result.bytes_at(offset, nbytes), chosen.region.bytes_at(node["offset"], nbytes)):
                changed.append(index)
            offset += -(-nbytes // 64) * 64
        return changed

    def close(self) -> None:
        self.process.end()
        if self.result is not None:
            self.result.close()
            self.result = None

    def _note_weights(self, reply: dict[str, Any]) -> None:
        unmatched = reply.get("unmatched")
        if isinstance(unmatched, list) and unmatched:
            self.notes["unmatched_weights"] = [str(name)[:100] for name in unmatched[:20]]


def _shapes(description: dict[str, Any]) -> str:
    try:
        return ", ".join(f"{node['dtype']}{list(node['shape'])}" for node in tensor_nodes(description)[:4])[:200]
    except (KeyError, TypeError, AttributeError):
        return "something"
