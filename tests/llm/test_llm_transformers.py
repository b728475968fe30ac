import asyncio
import threading
from collections import Counter

import pytest
import torch

from davinci_kernel.errors import UserError
from davinci_kernel.llm import SamplingParams, TransformersLLM, save_model


def prompt(length, seed):
    return torch.randint(10, 390, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def full_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float()


def assert_logprobs(model, completion, temperature=1.0):
    """Against one unpadded forward over prompt and answer, without a cache."""
    logits = full_logits(model, [*completion.prompt_ids, *completion.token_ids])[len(completion.prompt_ids) - 1 : -1]
    expected = torch.log_softmax(logits / temperature, -1).gather(1, torch.tensor(completion.token_ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=2e-4, rtol=1e-4)


async def test_logprobs_equal_a_full_forward(model, tokenizer):
    """Padded, deduplicated, with rows that leave the batch at different times."""
    llm = TransformersLLM(model, tokenizer, device="cpu")
    prompts = [prompt(20, 0), prompt(20, 0), prompt(27, 1), prompt(23, 2), prompt(20, 0), prompt(18, 3)]
    limits = [3, 40, 7, 60, 60, 12]
    temperatures = [1.0, 0.7, 1.0, 1.5, 1.0, 0.5]
    params = [
        SamplingParams(max_tokens=n, temperature=t, seed=i)
        for i, (n, t) in enumerate(zip(limits, temperatures, strict=True))
    ]
    completions = await asyncio.gather(*map(llm.complete, prompts, params))
    for completion, ids, param in zip(completions, prompts, params, strict=True):
        assert completion.prompt_ids == tuple(ids)
        assert 1 <= len(completion.token_ids) == len(completion.logprobs) <= param.max_tokens
        assert_logprobs(model, completion, param.temperature)
    assert len({c.token_ids[:10] for c in completions}) == len(completions)
    await llm.close()


async def test_greedy_is_what_transformers_generates(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    prompts = [prompt(n, n) for n in (15, 19, 16)]
    completions = await asyncio.gather(
        *(llm.complete(p, SamplingParams(max_tokens=30, temperature=0)) for p in prompts)
    )
    for ids, completion in zip(prompts, completions, strict=True):
        expected = model.generate(torch.tensor([ids]), max_new_tokens=30, do_sample=False)[0, len(ids) :].tolist()
        assert list(completion.token_ids) == expected
        assert_logprobs(model, completion)


async def test_a_seed_fixes_the_tokens_whatever_the_company(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    params = SamplingParams(max_tokens=40, seed=7)
    alone = await llm.complete(prompt(20, 0), params)
    others = [SamplingParams(max_tokens=9, temperature=t, top_p=p) for t, p in ((0, 1.0), (1.0, 0.5), (2.0, 1.0))]
    together = await asyncio.gather(
        *(llm.complete(prompt(22, i), p) for i, p in enumerate(others)), llm.complete(prompt(20, 0), params)
    )
    assert together[-1].token_ids == alone.token_ids
    other_seed = await llm.complete(prompt(20, 0), SamplingParams(max_tokens=40, seed=8))
    assert other_seed.token_ids != alone.token_ids


async def test_batch_invariant_repeats_bit_by_bit(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu", batch_invariant=True)
    params = [SamplingParams(max_tokens=20, seed=i) for i in range(5)]
    prompts = [prompt(20 + i, i) for i in range(5)]
    together = await asyncio.gather(*map(llm.complete, prompts, params))
    alone = [await llm.complete(p, s) for p, s in zip(prompts, params, strict=True)]
    assert together == alone


async def test_draws_follow_the_distribution(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu", max_batch=1000)
    ids, n = prompt(12, 5), 1000
    completions = await asyncio.gather(
        *(llm.complete(ids, SamplingParams(max_tokens=1, temperature=2.0, seed=i)) for i in range(n))
    )
    counts = Counter(c.token_ids[0] for c in completions)
    probs = torch.softmax(full_logits(model, ids)[-1] / 2.0, -1)
    for token in probs.topk(5).indices.tolist():
        p = probs[token].item()
        assert abs(counts[token] / n - p) < 5 * (p * (1 - p) / n) ** 0.5


async def test_finish_reasons_and_text(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    ids = prompt(15, 9)
    cut = await llm.complete(ids, SamplingParams(max_tokens=4, temperature=0))
    assert cut.finish_reason == "length"
    assert cut.text == tokenizer.decode(cut.token_ids)
    stopping = TransformersLLM(model, tokenizer, device="cpu")
    stopping._stop_ids = frozenset({cut.token_ids[2]})
    stopped = await stopping.complete(ids, SamplingParams(max_tokens=4, temperature=0))
    length = cut.token_ids.index(cut.token_ids[2]) + 1
    assert (stopped.finish_reason, stopped.token_ids) == ("stop", cut.token_ids[:length])
    assert stopped.text == tokenizer.decode(cut.token_ids[: length - 1])
    assert stopped.usage == {"prompt_tokens": 15, "completion_tokens": length}


async def test_the_context_ends_an_answer(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    completion = await llm.complete(prompt(250, 0), SamplingParams(max_tokens=50, temperature=0))
    assert (len(completion.token_ids), completion.finish_reason) == (6, "length")
    with pytest.raises(UserError, match="256 tokens fill the model's context"):
        await llm.complete(prompt(256, 0), SamplingParams())


@pytest.mark.parametrize("params", [{"max_tokens": 0}, {"temperature": -1}, {"top_p": 0}, {"top_p": 1.5}])
async def test_bad_parameters(model, tokenizer, params):
    with pytest.raises(UserError, match="sampling: need"):
        await TransformersLLM(model, tokenizer, device="cpu").complete([5], SamplingParams(**params))


async def test_generation_holds_the_lock(model, tokenizer):
    lock = asyncio.Lock()
    llm = TransformersLLM(model, tokenizer, device="cpu", lock=lock)
    held, threads = [], set()

    def observe(*_):
        held.append(lock.locked())
        threads.add(threading.get_ident())

    hook = model.register_forward_hook(observe)
    async with lock:
        waiting = asyncio.create_task(llm.complete(prompt(9, 0), SamplingParams(max_tokens=3)))
        await asyncio.sleep(0.05)
        assert not held
    await waiting
    hook.remove()
    assert held
    assert all(held)
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    assert not lock.locked()


async def test_distinct_prompts_are_prefilled_once(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    shapes = []
    hook = model.register_forward_hook(
        lambda _, args, kwargs, out: shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    await asyncio.gather(*(llm.complete(prompt(14, i % 2), SamplingParams(max_tokens=2)) for i in range(8)))
    hook.remove()
    assert shapes[0] == (2, 14)


async def test_errors_reach_every_caller_and_the_engine_goes_on(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    calls = [llm.complete([10_000 + i], SamplingParams(max_tokens=2)) for i in range(3)]
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in errors] == [IndexError] * 3
    assert (await llm.complete([20], SamplingParams(max_tokens=2, seed=0))).token_ids


async def test_close_refuses_further_requests(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    await llm.close()
    with pytest.raises(RuntimeError, match="closed"):
        await llm.complete([20], SamplingParams())


async def test_a_cancelled_caller_leaves_the_others_alone(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu", batch_invariant=True)
    calls = [asyncio.create_task(llm.complete([20 + i], SamplingParams(max_tokens=3, seed=i))) for i in range(3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [r.prompt_ids for r in (results[0], results[2])] == [(20,), (22,)]
    assert isinstance(results[1], asyncio.CancelledError)


async def test_requests_of_very_different_length_are_not_padded_together(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu", max_batch=2)
    widths = []
    hook = model.register_forward_hook(
        lambda _, args, kwargs, out: widths.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    one = SamplingParams(max_tokens=1)
    await asyncio.gather(*(llm.complete(prompt(n, n), one) for n in (100, 20, 90, 110, 21)))
    hook.remove()
    assert widths == [(2, 100), (2, 21), (1, 110)]


async def test_training_mode_and_weights_stay_the_owners(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    assert llm.model is model
    model.train()
    before = await llm.complete(prompt(12, 1), SamplingParams(max_tokens=1, temperature=0))
    assert model.training
    model.eval()
    weights = model.model.embed_tokens.weight
    saved = weights.detach().clone()
    with torch.no_grad():
        weights[before.token_ids[0]] = 0
    after = await llm.complete(prompt(12, 1), SamplingParams(max_tokens=1, temperature=0))
    with torch.no_grad():
        weights.copy_(saved)
    assert after.token_ids != before.token_ids


def test_engine_serves_several_event_loops(model, tokenizer):
    llm = TransformersLLM(model, tokenizer, device="cpu")
    params = SamplingParams(max_tokens=5, seed=3)
    first = asyncio.run(llm.complete(prompt(10, 0), params))
    assert asyncio.run(llm.complete(prompt(10, 0), params)) == first


async def test_load_and_chat(model, tokenizer, tmp_path):
    save_model(model, tokenizer, tmp_path)
    llm = TransformersLLM.load(tmp_path, device="cpu", max_batch=2)
    messages = [{"role": "user", "content": "Make this module faster."}]
    completion = await llm.chat(messages, SamplingParams(max_tokens=8, temperature=0))
    ids = tokenizer.encode("<|im_start|>user\nMake this module faster.<|im_end|>\n<|im_start|>assistant\n")
    assert completion.prompt_ids == tuple(ids)
    expected = model.generate(torch.tensor([ids]), max_new_tokens=8, do_sample=False)[0, len(ids) :].tolist()
    assert list(completion.token_ids) == expected


@pytest.mark.parametrize(("path", "device"), [("no/such/model/dir", "cpu"), ("x", "warp"), ("x", "cuda:99")])
def test_load_of_nothing(path, device):
    with pytest.raises(UserError) as error:
        TransformersLLM.load(path, device=device)
    assert "\n" not in str(error.value)
