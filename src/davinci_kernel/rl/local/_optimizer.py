"""AdamW for weights of any precision.

A bfloat16 weight has 8 significant bits: at a learning rate of 1e-6 nearly every step rounds to nothing. Models below
float32 therefore keep a float32 copy of each weight, which collects the gradients of all micro-batches and takes the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def adamw(parameters: Iterable[torch.nn.Parameter], learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW over `parameters`, by way of float32 copies where any of them is less precise.

    Gradients are those of the tensors in the optimizer's `param_groups`, which need not be the model's.
    """
    trained = [p for p in parameters if p.requires_grad]
    kind = torch.optim.AdamW if all(p.dtype == torch.float32 for p in trained) else _MasterAdamW
    return kind(trained, lr=learning_rate, weight_decay=weight_decay)


class _MasterAdamW(torch.optim.AdamW):
    def __init__(self, parameters: list[torch.nn.Parameter], **options: Any) -> None:
        self._trained = parameters
        self._masters = [p.detach().to(torch.float32, copy=True) for p in parameters]
        super().__init__(self._masters, **options)
        for parameter, master in zip(self._trained, self._masters, strict=True):
            parameter.register_post_accumulate_grad_hook(lambda p, master=master: _collect(p, master))

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = super().step(closure)
        for parameter, master in zip(self._trained, self._masters, strict=True):
            parameter.copy_(master)
        return loss

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"masters": self._masters}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for parameter, master, saved in zip(self._trained, self._masters, state_dict["masters"], strict=True):
            master.copy_(saved)
            parameter.copy_(master)


def _collect(parameter: torch.Tensor, master: torch.Tensor) -> None:
    assert parameter.grad is not None
    gradient = parameter.grad.float()
    master.grad = gradient if master.grad is None else master.grad.add_(gradient)
    parameter.grad = None
