"""The `transformers` engine: concurrent requests become batches; a worker thread generates them one after another."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from davinci_kernel.errors import UserError

from ._chat import end_of_turn, extend_prompt, render_prompt
from ._types import Completion, Message, SamplingParams, ToolSchema

if TYPE_CHECKING:
    import torch

    from ._decode import Generated, Request

_GATHER_SECONDS = 0.004  # how long the first request of an idle engine waits for company
_LENGTH_RATIO = 1.5  # longest to shortest prompt in one batch, so that padding stays cheap


class TransformersLLM:
    """An engine over a causal language model of `transformers`, on CPU or GPU.

    The weights are shared, never copied: whoever trains `model` between calls samples from the new policy at once.
    `positions` is the model's context in tokens, None where its configuration names none.

    Args:
        model: the causal language model; moved to `device`.
        device: `auto`, `cpu`, `cuda`, `cuda:1` ...
        max_batch: rows that are decoded together at most.
        batch_invariant: generate each request alone, in order of arrival: a request with a seed then repeats its tokens
            and log-probabilities bit by bit, whatever runs beside it. Slower.
        lock: held while generating; the gym holds the same lock while timing.
        enable_thinking: passed to the chat template by `render`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        device: str = "auto",
        max_batch: int = 64,
        batch_invariant: bool = False,
        lock: asyncio.Lock | None = None,
        enable_thinking: bool = False,
    ) -> None:
        self.model = model.to(_device(device))
        self.tokenizer = tokenizer
        self._max_batch = 1 if batch_invariant else max_batch
        self._lock = lock
        self._enable_thinking = enable_thinking
        self._stop_ids = _stop_ids(model, tokenizer)
        self._pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(self._stop_ids, default=0)
        self.positions: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._waiting: list[tuple[Request, asyncio.Future[Generated]]] = []
        self._drainer: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="transformers-llm")
        self._closed = False

    @classmethod
    def load(
        cls, path: str | Path, device: str = "auto", dtype: str | torch.dtype | None = None, **options: Any
    ) -> TransformersLLM:
        """Load a model directory, a hub id, or a `.gguf` file (which is dequantised; extra ``[gguf]``).

        Args:
            dtype: None: float32 on the CPU, the checkpoint's own elsewhere.
            options: further arguments of the constructor.

        Raises:
            UserError: nothing loadable at `path`, or no such device.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        device = _device(device)
        where, extra = str(path), {}
        if where.endswith(".gguf"):
            _require_gguf(where)
            where, extra = str(Path(path).parent), {"gguf_file": Path(path).name}
        try:
            tokenizer = AutoTokenizer.from_pretrained(where, **extra)
            dtype = dtype or ("float32" if device == "cpu" else "auto")
            model = AutoModelForCausalLM.from_pretrained(where, dtype=dtype, **extra)
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"{path}: not a model directory, hub id or GGUF file that can be loaded: {reason}"
            ) from error
        return cls(model, tokenizer, device=device, **options)

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSchema] | None = None) -> tuple[int, ...]:
        """Prompt token ids, generation prompt included."""
        return tuple(render_prompt(self.tokenizer, messages, tools, enable_thinking=self._enable_thinking))

    def extend(
        self, prompt_ids: Sequence[int], response_ids: Sequence[int], new_messages: Sequence[Message]
    ) -> tuple[int, ...]:
        """The next turn's prompt, by `extend_prompt`."""
        return tuple(extend_prompt(self.tokenizer, prompt_ids, response_ids, new_messages, self._enable_thinking))

    async def chat(
        self, messages: Sequence[Message], params: SamplingParams, tools: Sequence[ToolSchema] | None = None
    ) -> Completion:
        """`render`, then `complete`."""
        return await self.complete(self.render(messages, tools), params)

    async def complete(
        self, prompt_ids: Sequence[int], params: SamplingParams, on_token: Callable[[int], object] | None = None
    ) -> Completion:
        """Continue a prompt.

        Args:
            on_token: called with each sampled id at once, from the generating thread.

        Raises:
            UserError: an empty prompt, one that fills the model's context, or a bad sampling parameter.
        """
        from ._decode import Request

        if self._closed:
            raise RuntimeError("the engine is closed")
        request = Request(tuple(prompt_ids), params, self.limit(len(prompt_ids), params), on_token)
        future: asyncio.Future[Generated] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._drainer is None or self._drainer.done():
            self._drainer = asyncio.create_task(self._drain())
        generated = await future
        return self._completion(request, generated)

    async def close(self) -> None:
        """Finish the batch that is running; requests still waiting fail."""
        self._closed = True
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(RuntimeError("the engine was closed"))
        self._waiting.clear()
        if self._drainer is not None:
            await asyncio.gather(self._drainer, return_exceptions=True)
        self._thread.shutdown()

    async def _drain(self) -> None:
        """Generate batch after batch until nobody waits. The lock is free between batches, so that the gym gets in."""
        await asyncio.sleep(_GATHER_SECONDS)
        while self._waiting:
            async with self._lock or contextlib.nullcontext():
                batch = self._next_batch()
                if batch:
                    await self._run(batch)

    async def _run(self, batch: list[tuple[Request, asyncio.Future[Generated]]]) -> None:
        from ._decode import generate

        requests = [request for request, _ in batch]
        work = functools.partial(generate, self.model, requests, self._stop_ids, self._pad_id)
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)

    def _next_batch(self) -> list[tuple[Request, asyncio.Future[Generated]]]:
        """The oldest request and the later ones of similar prompt length, at most `max_batch`; taken off the queue."""
        self._waiting = [entry for entry in self._waiting if not entry[1].done()]
        if not self._waiting:
            return []
        shortest = longest = len(self._waiting[0][0].prompt_ids)
        batch: list[tuple[Request, asyncio.Future[Generated]]] = []
        rest: list[tuple[Request, asyncio.Future[Generated]]] = []
        for entry in self._waiting:
            length = len(entry[0].prompt_ids)
            low, high = min(shortest, length), max(longest, length)
            if len(batch) < self._max_batch and high <= _LENGTH_RATIO * low:
                batch.append(entry)
                shortest, longest = low, high
            else:
                rest.append(entry)
        self._waiting = rest
        return batch

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of some ids, special tokens included."""
        return self.tokenizer.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def limit(self, prompt_length: int, params: SamplingParams) -> int:
        """New tokens that a prompt of this length gets: as asked for, or as many as the context holds.

        Raises:
            UserError: as `complete`.
        """
        if prompt_length == 0:
            raise UserError("prompt: is empty")
        if params.max_tokens < 1 or params.temperature < 0 or not 0 < params.top_p <= 1:
            raise UserError(f"sampling: need max_tokens >= 1, temperature >= 0 and 0 < top_p <= 1, got {params}")
        if self.positions is None:
            return params.max_tokens
        if prompt_length >= self.positions:
            raise UserError(f"prompt: {prompt_length} tokens fill the model's context of {self.positions}")
        return min(params.max_tokens, self.positions - prompt_length)

    def _completion(self, request: Request, generated: Generated) -> Completion:
        ids = generated.token_ids
        shown = ids[:-1] if generated.finish_reason == "stop" else ids
        return Completion(
            text=self.decode(shown),
            token_ids=tuple(ids),
            logprobs=tuple(generated.logprobs),
            finish_reason=generated.finish_reason,
            prompt_ids=request.prompt_ids,
            usage={"prompt_tokens": len(request.prompt_ids), "completion_tokens": len(ids)},
        )


def _device(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"device: {name!r} is none; use auto, cpu, cuda or cuda:N") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"device: {name!r} was not found; use device=cpu or one of {torch.cuda.device_count()} GPUs")
    return name


def _require_gguf(path: str) -> None:
    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"{path}: reading GGUF needs {' and '.join(missing)}; pip install 'davinci-kernel[gguf]'")


def _stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every id that may end an answer: of the tokenizer, the generation config and the chat template."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = {tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])}
    if tokenizer.chat_template:
        ids.add(end_of_turn(tokenizer))
    return frozenset(token for token in ids if token is not None)
