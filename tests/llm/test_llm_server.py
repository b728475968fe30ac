"""`davinci llm serve` over a real model, asked by OpenAI's own client."""

import asyncio
import json

import httpx
import openai
import pytest
from faults import running

from davinci_kernel.llm import SamplingParams, TransformersLLM, render_prompt
from davinci_kernel.llm.server import _before_call, _split, chat_app

ASK = [{"role": "user", "content": "Make this module faster.\n"}]
TOOL = {"type": "function", "function": {"name": "pick", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def llm(model, tokenizer):
    return TransformersLLM(model, tokenizer, device="cpu")


@pytest.fixture(scope="module")
def url(llm):
    with running(chat_app(llm, "tiny", max_waiting=8)) as url:
        yield url


@pytest.fixture
async def client(url):
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


def expected(model, tokenizer, **params):
    """The engine's own completion of the same prompt, on an event loop of its own."""
    engine = TransformersLLM(model, tokenizer, device="cpu")
    ids = render_prompt(tokenizer, ASK)
    return asyncio.run(engine.complete(ids, SamplingParams(**params)))


async def ask(client, **arguments):
    return await client.chat.completions.create(model="tiny", messages=ASK, max_tokens=12, **arguments)


async def test_an_answer_is_the_engines(client, model, tokenizer):
    answer = await ask(client, seed=3, temperature=0.8, top_p=0.9, logprobs=True)
    wanted = await asyncio.to_thread(expected, model, tokenizer, max_tokens=12, seed=3, temperature=0.8, top_p=0.9)
    choice = answer.choices[0]
    assert (choice.message.content or "", choice.finish_reason) == (wanted.text, wanted.finish_reason)
    assert [t.logprob for t in choice.logprobs.content] == pytest.approx(list(wanted.logprobs), abs=1e-4)
    assert answer.usage.prompt_tokens == len(wanted.prompt_ids)
    assert answer.usage.completion_tokens == len(wanted.token_ids)


async def test_n_draws_have_seeds_of_their_own(client, model, tokenizer):
    answer = await ask(client, seed=3, n=3)
    wanted = [await asyncio.to_thread(expected, model, tokenizer, max_tokens=12, seed=s) for s in (3, 4, 5)]
    assert [c.message.content or "" for c in answer.choices] == [w.text for w in wanted]
    assert answer.usage.completion_tokens == sum(len(w.token_ids) for w in wanted)
    assert len({w.text for w in wanted}) == 3


async def test_a_stream_adds_up_to_the_answer(client):
    whole = await ask(client, seed=3, n=2)
    texts, reasons, usage = ["", ""], {}, None
    async for chunk in await ask(client, seed=3, n=2, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            reasons[choice.index] = choice.finish_reason
    assert texts == [c.message.content or "" for c in whole.choices]
    assert reasons == {0: whole.choices[0].finish_reason, 1: whole.choices[1].finish_reason}
    assert usage == whole.usage


async def test_concurrent_requests_share_batches(url, model, tokenizer, monkeypatch):
    from davinci_kernel.llm import _decode

    sizes = []
    whole = _decode.generate

    def counted(model, requests, *rest):
        sizes.append(len(requests))
        return whole(model, requests, *rest)

    monkeypatch.setattr(_decode, "generate", counted)
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        await asyncio.gather(*(ask(client, seed=s) for s in range(6)))
    assert sum(sizes) == 6
    assert len(sizes) < 6


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"model": "other"}, 404, "'other' is not served here; 'tiny' is"),
        ({"messages": []}, 400, "messages: "),
        ({"messages": [{"content": "x"}]}, 400, r"messages\[0\]: no role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "only text"),
        ({"messages": ASK * 200}, 400, "context of 256"),
        ({"temperature": -1}, 400, "temperature: "),
        ({"stop": ["x"]}, 400, "stop is not served"),
        ({"top_logprobs": 5}, 400, "top_logprobs is not served"),
        ({"tool_choice": "required"}, 400, "tool_choice is not served"),
        ({"n": 9}, 429, "8 at most"),
    ],
)
async def test_refusals(client, change, status, message):
    with pytest.raises(openai.APIStatusError, match=message) as error:
        await client.chat.completions.create(**{"model": "tiny", "messages": ASK, "max_tokens": 2, **change})
    assert error.value.status_code == status


async def test_no_body_and_no_such_path(url):
    async with httpx.AsyncClient() as client:
        assert (await client.post(f"{url}/chat/completions", content=b"{")).status_code == 400
        assert (await client.get(f"{url}/nothing")).status_code == 404
        models = (await client.get(f"{url}/models")).json()
    assert [(m["id"], m["max_model_len"]) for m in models["data"]] == [("tiny", 256)]


async def test_a_key_is_wanted(llm):
    with running(chat_app(llm, "tiny", api_key="secret")) as url:
        for key, status in (("wrong", 401), ("secret", 200)):
            async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
                assert (await client.get(f"{url}/models")).status_code == status


def test_calls_of_offered_tools_are_parted_from_the_text():
    call = '<tool_call>\n{"name": "pick", "arguments": {"names": ["a"]}}\n</tool_call>'
    content, calls = _split(f"I pick.\n{call}", {"pick"})
    assert content == "I pick."
    assert [(c.name, c.arguments) for c in calls] == [("pick", {"names": ["a"]})]
    assert _split(call, {"other"}) == (call, [])
    assert _split(call[:-30], {"pick"}) == (call[:-30], [])


def test_a_stream_shows_nothing_of_a_call():
    text = 'I pick. <tool_call>\n{"name": "pick"'
    assert [_before_call(text[:n]) for n in (7, 9, 15, 30)] == ["I pick.", "I pick.", "I pick.", "I pick."]
    assert _before_call("a < b") == "a < b"


async def test_a_served_tool_call_and_its_history(tokenizer, monkeypatch):
    """The model is taught one call; the client sees it as a call, whole and streamed, and sends it back."""
    import torch

    from davinci_kernel.llm import render_with_mask, small_model

    taught = {"name": "pick", "arguments": {"names": ["a"]}}
    answer = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": taught}]}
    ids, mask = render_with_mask(tokenizer, [*ASK, answer], [TOOL])
    model = small_model(tokenizer, layers=1, width=64, heads=2, mlp=64, max_positions=1024)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    labels = torch.tensor([[i if m else -100 for i, m in zip(ids, mask, strict=True)]])
    for _ in range(40):
        model(torch.tensor([ids]), labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with running(chat_app(TransformersLLM(model, tokenizer, device="cpu"), "tiny")) as url:
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            asking = {"model": "tiny", "temperature": 0, "max_tokens": 200, "tools": [TOOL]}
            whole = (await client.chat.completions.create(messages=ASK, **asking)).choices[0]
            chunks = [c async for c in await client.chat.completions.create(messages=ASK, stream=True, **asking)]
            again = await client.chat.completions.create(
                messages=[*ASK, whole.message.model_dump(exclude_none=True), *ASK], **asking
            )
    function = whole.message.tool_calls[0].function
    assert (function.name, json.loads(function.arguments)) == ("pick", {"names": ["a"]})
    assert (whole.finish_reason, whole.message.content) == ("tool_calls", None)
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    streamed = [call for delta in deltas for call in delta.tool_calls or ()]
    assert [(c.function.name, json.loads(c.function.arguments)) for c in streamed] == [("pick", {"names": ["a"]})]
    assert "".join(delta.content or "" for delta in deltas) == ""
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert again.usage.prompt_tokens == len(render_prompt(tokenizer, [*ASK, answer, *ASK], [TOOL]))
