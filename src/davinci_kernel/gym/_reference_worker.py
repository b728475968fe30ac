"""The reference's worker: makes inputs from secret seeds, runs the reference, writes both to sealed shared memory."""

from __future__ import annotations

import copy
import linecache
import random
import sys
from types import ModuleType
from typing import Any

import numpy as np
import torch

from davinci_kernel.gym._channel import Channel
from davinci_kernel.gym._device import CpuDevice
from davinci_kernel.gym._tensors import Region, describe
from davinci_kernel.gym._worker import Worker, named_state, tensors_of

TRANSFORMS = ("x3", "x0.01", "negated", "shifted")
"""Changed value distributions of the extra trials."""


class ReferenceWorker(Worker):
    """The reference's side: inputs, weights, outputs, float64 oracle."""

    def op_import(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Build the reference; reply its init inputs and weights, and whether the oracle exists."""
        self.module = _execute(request["code"])
        for name in (request["class_name"], "get_inputs", "get_init_inputs"):
            if not hasattr(self.module, name):
                raise AttributeError(f"the reference defines no {name}")
        _seed_all(request["seed"])
        init = self.module.get_init_inputs()
        init = init if isinstance(init, dict) else list(init)
        torch.manual_seed(request["seed"])
        build = getattr(self.module, request["class_name"])
        with torch.no_grad():
            model = build(**copy.deepcopy(init)) if isinstance(init, dict) else build(*copy.deepcopy(init))
        self.model = self.device.place(model)
        baseline = request.get("baseline", "eager")
        self.baseline = _compiled(self.model, baseline) if baseline != "eager" else self.model
        self.remember_state()
        self.first_state = self.state
        weights = {name: tensor.clone() for name, tensor in named_state(self.model).items()}
        (init_node, weights_node), region = _frozen([init, weights])
        return {"init": init_node, "weights": weights_node, "size": region.size}, [region.fd]

    def op_inputs(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Make the input set ``name`` from ``seed``, with its value distribution changed by ``transform``."""
        _seed_all(request["seed"])
        inputs = list(self.module.get_inputs())
        if request["transform"]:
            inputs = _map_floats(inputs, request["transform"])
        (node,), region = _frozen([inputs])
        self.regions[request["name"]] = (region, node)
        floats = any(tensor.is_floating_point() for tensor in tensors_of(inputs))
        return {"description": node, "size": region.size, "floats": floats}, [region.fd]

    def op_outputs(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Run the reference on an input set; reply its output and what it did to its inputs."""
        self.op_load({"name": request["name"]}, [])
        self.op_run({"seed": request["seed"], "restore_state": True}, [])
        return self.op_take(request, [])

    def op_run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """As the candidate's; ``timed`` runs the baseline, which may be compiled."""
        eager, self.model = self.model, self.baseline if request.get("timed") else self.model
        try:
            return super().op_run(request, fds)
        finally:
            self.model = eager

    def op_take(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """The last output, frozen."""
        (node,), region = _frozen([self.output])
        tensors, pristine = tensors_of(self.output), self.regions[request["name"]][0]
        floats = [tensor for tensor in tensors if tensor.is_floating_point()]
        pointers = {tensor.untyped_storage().data_ptr() for tensor in self.input_tensors if tensor.numel()}
        offset, mutates = 0, []
        for index, tensor in enumerate(self.input_tensors):
            nbytes = tensor.numel() * tensor.element_size()
            flat = tensor.as_strided((tensor.numel(),), (1,))
            if nbytes and not torch.equal(flat.view(torch.uint8).cpu(), pristine.bytes_at(offset, nbytes)):
                mutates.append(index)
            offset += -(-nbytes // 64) * 64
        reply = {
            "description": node,
            "size": region.size,
            "finite": all(
                bool(torch.isfinite(tensor.sum())) or bool(torch.isfinite(tensor).all()) for tensor in floats
            ),
            "all_nan": bool(floats) and all(bool(torch.isnan(tensor).all()) for tensor in floats),
            "mutates": mutates,
            "aliases_input": any(t.untyped_storage().data_ptr() in pointers for t in tensors if t.numel()),
        }
        return reply, [region.fd]

    def op_oracle(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """The output of an input set in float64: the yardstick of the reference's own rounding."""
        if request["name"] is not None:
            self.op_load({"name": request["name"]}, [])
        inputs = [_to_double(item) for item in self.inputs]
        for tensor, pristine in self.state:
            tensor.copy_(pristine)
        model = copy.deepcopy(self.model)
        model = model.double() if isinstance(model, torch.nn.Module) else model
        torch.manual_seed(request["seed"])
        with torch.no_grad():
            output = model(*inputs)
        (node,), region = _frozen([output])
        return {"description": node, "size": region.size}, [region.fd]

    def op_randomise(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Randomise constant-valued floating parameters and buffers; reply all weights, ``changed`` 0 if none was.

        ``seed`` None puts the model's first weights back.
        """
        if request["seed"] is None:
            for tensor, first in self.first_state:
                tensor.copy_(first)
            self.remember_state()
            return {}, []
        generator = torch.Generator().manual_seed(request["seed"])
        changed = 0
        state = named_state(self.model)
        for tensor in state.values():
            if tensor.is_floating_point() and tensor.numel() > 1 and bool((tensor == tensor.flatten()[0]).all()):
                noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 0.5 + 0.1
                tensor.add_(noise.to(tensor))
                changed += 1
        self.remember_state()
        (node,), region = _frozen([state])
        return {"weights": node, "size": region.size, "changed": changed}, [region.fd]


def serve(channel: Channel, device: CpuDevice) -> None:
    """Be the reference's worker until the channel closes."""
    ReferenceWorker(channel, device).serve()


def _execute(code: str) -> ModuleType:
    """Run the reference's source without writing it to any file, yet visible to `inspect`."""
    name = "<reference>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    module = ModuleType("reference")
    sys.modules["reference"] = module
    exec(compile(code, name, "exec"), vars(module))
    return module


def _compiled(model: Any, baseline: str) -> Any:
    return torch.compile(model, mode="max-autotune" if baseline == "max-autotune" else None)


def _seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def _frozen(values: list[Any]) -> tuple[list[dict[str, Any]], Region]:
    """Descriptions of several values over one sealed region."""
    node, tensors, offsets, size = describe(values)
    return node["items"], Region.frozen(tensors, offsets, size)


def _map_floats(value: Any, transform: str) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        match transform:
            case "x3":
                return value * 3
            case "x0.01":
                return value * 0.01
            case "negated":
                return -value
            case _:
                return value + 0.5
    if isinstance(value, (list, tuple)):
        return type(value)(_map_floats(item, transform) for item in value)
    return value


def _to_double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_double(item) for item in value)
    return value
