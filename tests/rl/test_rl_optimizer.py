"""AdamW over weights that are too coarse for its steps, against AdamW on float32 weights."""

import pytest
import torch

from davinci_kernel.rl.local._optimizer import adamw

RATE = 1e-6


def trained(dtype, steps=200, micro_batches=1):
    """A weight after `steps` equal gradients; by Adam's definition each moves it by the learning rate."""
    weight = torch.nn.Parameter(torch.tensor([0.02, -0.5, 1.0], dtype=dtype))
    optimizer = adamw([weight], RATE, 0.0)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        for _ in range(micro_batches):
            (weight.sum() / micro_batches).backward()
        optimizer.step()
    return weight, optimizer


def test_steps_below_the_precision_of_bfloat16_add_up():
    weight, optimizer = trained(torch.bfloat16)
    (master,) = optimizer.param_groups[0]["params"]
    start = torch.tensor([0.02, -0.5, 1.0], dtype=torch.bfloat16).float()
    torch.testing.assert_close(master, start - 200 * RATE, rtol=0, atol=1e-5)  # 200 roundings
    assert torch.equal(weight, master.bfloat16())
    assert weight[0] != start[0]  # 2e-4 is more than the spacing of bfloat16 at 0.02
    naive = torch.nn.Parameter(start.bfloat16())
    plain = torch.optim.AdamW([naive], lr=RATE, weight_decay=0.0)
    for _ in range(200):
        naive.grad = torch.ones_like(naive)
        plain.step()
    assert torch.equal(naive, start.bfloat16())  # why the copies exist


def test_gradients_of_micro_batches_add_up_in_float32():
    """256 + 1 + 1 + ... is 256 in bfloat16, however often."""
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.bfloat16))
    optimizer = adamw([weight], RATE, 0.0)
    for factor in (256.0, *(1.0,) * 8):
        (weight * factor).sum().backward()
    assert optimizer.param_groups[0]["params"][0].grad.item() == 264.0
    optimizer.zero_grad(set_to_none=True)
    assert optimizer.param_groups[0]["params"][0].grad is None
    assert weight.grad is None


def test_float32_weights_are_stepped_themselves():
    weight, optimizer = trained(torch.float32)
    assert optimizer.param_groups[0]["params"][0] is weight
    assert type(optimizer) is torch.optim.AdamW


def test_the_copies_travel_with_the_state(tmp_path):
    """What a checkpoint holds of the weights is rounded; the state restores what was rounded off."""
    weight, optimizer = trained(torch.bfloat16, steps=10)
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    resumed = torch.nn.Parameter(weight.detach().clone())
    other = adamw([resumed], RATE, 0.0)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for parameter, stepped in ((weight, optimizer), (resumed, other)):
        stepped.zero_grad(set_to_none=True)
        parameter.sum().backward()
        stepped.step()
    masters = [o.param_groups[0]["params"][0] for o in (optimizer, other)]
    assert torch.equal(*masters)
    assert not torch.equal(masters[1], masters[1].bfloat16().float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_frozen_weights_are_left_out(dtype):
    frozen = torch.nn.Parameter(torch.ones(2, dtype=dtype), requires_grad=False)
    weight = torch.nn.Parameter(torch.ones(2, dtype=dtype))
    assert len(adamw([frozen, weight], RATE, 0.0).param_groups[0]["params"]) == 1
