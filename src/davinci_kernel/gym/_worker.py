"""The worker in a forked process: builds a model, runs it on inputs from shared memory, hands out raw outputs.

`Worker` is what both sides have in common; `serve` runs the candidate's. Everything that this module reports about a
candidate is said by the candidate's own process: the judge treats it as hostile.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import resource
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from davinci_kernel.gym._channel import Channel
from davinci_kernel.gym._device import CpuDevice
from davinci_kernel.gym._evidence import Evidence, patched_functions
from davinci_kernel.gym._tensors import Region, describe, restore, tensor_nodes
from davinci_kernel.gym._triton import compile_ahead

BUFFER_SETS = 3
"""Sets of private input buffers that calls rotate through, so that addresses change."""
_MESSAGE_CHARS = 4000


class Worker:
    """Serves requests {op, ...} with {ok, ...}; an exception of the model's code is a reply {error, ...}."""

    def __init__(self, channel: Channel, device: CpuDevice):
        self.channel, self.device = channel, device
        self.model: Any = None
        self.regions: dict[str, tuple[Region, dict[str, Any]]] = {}
        self.buffers: list[list[torch.Tensor]] = []
        self.turn = 0
        self.inputs: Any = None
        self.input_tensors: list[torch.Tensor] = []
        self.output: Any = None
        self.previous: Any = None
        self.result: Region | None = None
        self.state: list[tuple[torch.Tensor, torch.Tensor]] = []

    def serve(self) -> None:
        """Answer until the channel closes."""
        while True:
            request, fds = self.channel.receive(max_fds=4)
            reply, out_fds = self.answer(request, fds)
            self.channel.send(reply | {"id": request["id"]}, out_fds)

    def answer(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        handler: Callable[..., dict[str, Any] | tuple[dict[str, Any], list[int]]] = getattr(self, f"op_{request['op']}")
        try:
            reply = handler(request, fds)
        except MemoryError:
            return {"error": "MemoryError: the memory limit was reached", "kind": "memory"}, []
        except SystemExit as error:
            return {"error": f"SystemExit: the code called sys.exit({error.code})", "kind": "exception"}, []
        except BaseException as error:
            if "can't allocate memory" in str(error):
                return {
                    "error": f"MemoryError: the memory limit was reached\n{describe_error(error)}",
                    "kind": "memory",
                }, []
            compiling = type(error).__module__.startswith("triton.compiler")  # Triton compiles at the first launch
            return {"error": describe_error(error), "kind": "compile" if compiling else "exception"}, []
        return reply if isinstance(reply, tuple) else (reply, [])

    def op_hello(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The worker has started."""
        return {}

    def op_map(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Take an input set (sealed region and description) under a name."""
        self.regions[request["name"]] = (Region(fds[0], request["size"], writable=False), request["description"])
        return {}

    def op_unmap(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        region, _ = self.regions.pop(request["name"])
        region.close()
        return {}

    def op_warm(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Have the allocator own pages for later temporaries: first-touch faults would otherwise decide short timings."""
        self.device.poison([request["bytes"]] * 2)
        return {}

    def op_probe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The device still computes."""
        self.device.probe()
        return {}

    def op_result(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Take the region that outputs go to."""
        self.result = Region(fds[0], request["size"], writable=True)
        return {}

    def op_load(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Copy an input set into the next private buffers.

        ``patches`` overwrite spans of it, [tensor, first byte, end byte], with those of the set ``patch_from``.
        """
        region, description = self.regions[request["name"]]
        nodes = tensor_nodes(description)
        self.turn = (self.turn + 1) % BUFFER_SETS
        while len(self.buffers) < BUFFER_SETS:
            views = tensors_of(restore(description, region, copy=False))
            self.buffers.append([self.device.buffer_like(view) for view in views])
        buffers = self.buffers[self.turn]
        for buffer, node in zip(buffers, nodes, strict=True):
            nbytes = buffer.numel() * buffer.element_size()
            self.device.write(buffer, 0, region, node["offset"], nbytes)
        if request.get("patches"):
            other, _ = self.regions[request["patch_from"]]
            for index, first, end in request["patches"]:
                self.device.write(buffers[index], first, other, nodes[index]["offset"] + first, end - first)
        remaining = iter(buffers)
        self.inputs = _replace_tensors(restore(description, region, copy=False), remaining)
        self.input_tensors = buffers
        self.previous, self.output = (self.output if request.get("keep_previous") else None), None
        return {}

    def op_run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run forward on the loaded inputs; ``snapshot`` writes the output right at its return.

        Request: ``seed`` of the RNG, ``poison`` bytes of NaN blocks freed before, ``restore_state``.
        """
        if request.get("restore_state"):
            for tensor, pristine in self.state:
                tensor.copy_(pristine)
        if request.get("seed") is not None:
            torch.manual_seed(request["seed"])
        self.device.poison(request.get("poison") or [])
        before = resource.getrusage(resource.RUSAGE_SELF)
        with torch.no_grad():
            timed = self.device.timed(self.model, self.inputs)
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.output = timed.output
        reply = {
            "ns": timed.ns,
            "late_ns": timed.late_ns,
            "faults": after.ru_minflt - before.ru_minflt,
            "switches": after.ru_nivcsw - before.ru_nivcsw,
        }
        return reply | self.op_output(request, fds) if request.get("snapshot") else reply

    def op_output(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Write the last output, then the input buffers as they are now, into the result region."""
        assert self.result is not None
        description, tensors, offsets, size = describe(self.output)
        reply: dict[str, Any] = {"description": description, "too_large": False}
        input_bytes = [buffer.numel() * buffer.element_size() for buffer in self.input_tensors]
        if size > request["capacity"] or any(tensor.device.type not in ("cpu", self.device.name) for tensor in tensors):
            return reply | {"too_large": True}
        for tensor, offset in zip(tensors, offsets, strict=True):
            self.result.write(offset, tensor)
        if request.get("inputs"):
            offset = request["capacity"]
            for buffer, nbytes in zip(self.input_tensors, input_bytes, strict=True):
                self.result.write(offset, buffer)
                offset += -(-nbytes // 64) * 64
        return reply | {
            "aliases_input": _share_memory(tensors, self.input_tensors),
            "aliases_previous": _share_memory(tensors, tensors_of(self.previous)),
        }

    def remember_state(self) -> None:
        """Keep the model's parameters and buffers as they are, for `restore_state`."""
        tensors = [*self.model.parameters(), *self.model.buffers()] if isinstance(self.model, torch.nn.Module) else []
        self.state = [(tensor.detach(), tensor.detach().clone()) for tensor in tensors]


class CandidateWorker(Worker):
    """The candidate's side: import, build, evidence."""

    def __init__(self, channel: Channel, device: CpuDevice):
        super().__init__(channel, device)
        self.module: ModuleType | None = None
        self.evidence = Evidence(device)

    def op_import(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Import the candidate's source; its kernels compile here."""
        self.evidence.before_import(request["code"], request.get("interpret", False))
        self.module = import_source(request["code"], "candidate")
        if not hasattr(self.module, request["class_name"]):
            raise AttributeError(f"the module defines no {request['class_name']}")
        return {}

    def op_build(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Construct the model and give it the reference's weights where name and shape match.

        Returns:
            ``unmatched``: the reference's names without a counterpart; ``missing``: the candidate's without one.
        """
        region = Region(fds[0], request["size"], writable=False)
        init = restore(request["init"], region)
        torch.manual_seed(request["seed"])
        build = getattr(self.module, request["class_name"])
        with torch.no_grad():
            self.model = self.device.place(build(**init) if isinstance(init, dict) else build(*init))
        return self.load_weights(request["weights"], region)

    def op_weights(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        region = Region(fds[0], request["size"], writable=False)
        reply = self.load_weights(request["weights"], region)
        region.close()
        return reply

    def load_weights(self, description: dict[str, Any], region: Region) -> dict[str, Any]:
        weights: dict[str, torch.Tensor] = restore(description, region)
        own = named_state(self.model)
        with torch.no_grad():
            for name in weights.keys() & own.keys():
                if own[name].shape == weights[name].shape:
                    own[name].copy_(weights[name])
        self.remember_state()
        matched = {name for name in weights.keys() & own.keys() if own[name].shape == weights[name].shape}
        return {"unmatched": sorted(weights.keys() - matched), "missing": sorted(own.keys() - matched)}

    def op_ghost(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self.evidence.set_ghost(request["on"])
        return {}

    def op_observe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run forward once more and report the kernels launched and the torch operators called, with their seconds."""
        torch.manual_seed(request["seed"])
        model, inputs = self.model, self.inputs
        with torch.no_grad(), self.evidence.observe() as observed:
            self.output = model(*inputs)
        return {"kernels": observed.kernels, "operators": observed.operators, "unordered": observed.unordered}

    def op_described(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Triton launches so far, as `_triton.compile_ahead` takes them."""
        return {"launches": self.evidence.hooks.described}

    def op_ahead(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Compile described launches of the imported module for a GPU that is not there."""
        assert self.module is not None
        return {"compiled": compile_ahead(self.module, request["launches"])}

    def op_patched(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return {"patched": patched_functions()}


def serve(channel: Channel, device: CpuDevice) -> None:
    """Be a candidate's worker until the channel closes."""
    CandidateWorker(channel, device).serve()


def named_state(model: Any) -> dict[str, torch.Tensor]:
    """Parameters and buffers, persistent or not, by name."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {name: tensor.detach() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}


def import_source(code: str, name: str) -> ModuleType:
    """Import source text from a real file in the current directory, so that tracebacks and inspect see it."""
    path = os.path.join(os.getcwd(), f"{name}.py")
    partial = f"{path}.{os.getpid()}"
    with open(partial, "w") as file:
        file.write(code)
    os.replace(partial, path)  # whole at any time: another process of the candidate may be reading it
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def describe_error(error: BaseException) -> str:
    """An exception as a model should read it: type, message, and the frames of its own file only."""
    text = f"{type(error).__name__}: {error}"[:_MESSAGE_CHARS]
    if isinstance(error, SyntaxError):
        return f"{text} (line {error.lineno})"
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        if os.path.basename(frame.filename) == "candidate.py" and frame.lineno:
            source = linecache.getline(frame.filename, frame.lineno).strip()
            lines.append(f"  line {frame.lineno}, in {frame.name}: {source[:160]}")
    return "\n".join([text, *lines[-6:]])


def tensors_of(value: Any) -> list[torch.Tensor]:
    return describe(value)[1]


def _replace_tensors(value: Any, tensors: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return type(value)(_replace_tensors(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: _replace_tensors(item, tensors) for key, item in value.items()}
    return value


def _share_memory(these: list[torch.Tensor], those: list[torch.Tensor]) -> bool:
    owned = {tensor.untyped_storage().data_ptr() for tensor in those if tensor.numel()}
    return any(tensor.untyped_storage().data_ptr() in owned for tensor in these if tensor.numel())
