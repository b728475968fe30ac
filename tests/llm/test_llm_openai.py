import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from davinci_kernel.errors import UserError
from davinci_kernel.llm import OpenAILLM, SamplingParams

TOOL = {"type": "function", "function": {"name": "pick", "parameters": {"type": "object"}}}
ASK = [{"role": "user", "content": "Hi"}]


def answer(content="hello", finish_reason="stop", tool_calls=None):
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    }


class Server(ThreadingHTTPServer):
    """Sends the next of `replies` (status, body) to each request, and keeps what it was asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies, self.asked = [], []
        self.pause, self.running, self.most_running = 0.0, 0, 0
        self.counter = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, self.headers["authorization"], body))
        with self.server.counter:
            self.server.running += 1
            self.server.most_running = max(self.server.most_running, self.server.running)
        time.sleep(self.server.pause)
        with self.server.counter:
            self.server.running -= 1
        status, reply = self.server.replies.pop(0)
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


async def test_chat(server):
    server.replies = [(200, answer())]
    llm = OpenAILLM("m", server.url, "secret")
    completion = await llm.chat(ASK, SamplingParams(max_tokens=7, temperature=0.5, top_p=0.9, seed=4))
    await llm.close()
    assert (completion.text, completion.finish_reason, completion.token_ids) == ("hello", "stop", ())
    assert completion.usage == {"prompt_tokens": 3, "completion_tokens": 5}
    wanted = {"model": "m", "messages": ASK, "max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "seed": 4}
    assert server.asked == [("/v1/chat/completions", "Bearer secret", wanted)]


async def test_tool_calls_there_and_back(server):
    call = {"id": "c", "type": "function", "function": {"name": "pick", "arguments": '{"names": ["a"]}'}}
    broken = {"id": "d", "type": "function", "function": {"name": "pick", "arguments": '{"names": '}}
    server.replies = [(200, answer(None, "tool_calls", [call, broken]))]
    ours = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "pick", "arguments": {"n": 1}}}]}
    completion = await OpenAILLM("m", server.url).chat([*ASK, ours], SamplingParams(), [TOOL])
    assert completion.text == ""
    assert completion.tool_calls == (
        {"name": "pick", "arguments": {"names": ["a"]}},
        {"name": "pick", "arguments": '{"names": '},
    )
    body = server.asked[0][2]
    assert body["tools"] == [TOOL]
    assert "seed" not in body
    sent = body["messages"][1]["tool_calls"][0]
    assert sent == {"id": "call_0", "type": "function", "function": {"name": "pick", "arguments": '{"n": 1}'}}


@pytest.mark.parametrize(("given", "expected"), [("length", "length"), ("content_filter", "error"), ("stop", "stop")])
async def test_finish_reasons(server, given, expected):
    server.replies = [(200, answer(finish_reason=given))]
    assert (await OpenAILLM("m", server.url).chat(ASK, SamplingParams())).finish_reason == expected


async def test_a_server_error_is_tried_again(server):
    server.replies = [(500, {"error": {"message": "busy"}}), (500, {"error": {"message": "busy"}}), (200, answer())]
    completion = await OpenAILLM("m", server.url, max_retries=2).chat(ASK, SamplingParams())
    assert (completion.text, len(server.asked)) == ("hello", 3)


@pytest.mark.parametrize(("status", "reason"), [(500, "busy"), (401, "bad key"), (404, "no model")])
async def test_refusals_are_one_line(server, status, reason):
    server.replies = [(status, {"error": {"message": reason}})]
    with pytest.raises(UserError, match=rf"{server.url}.*{status}.*{reason}") as error:
        await OpenAILLM("m", server.url, max_retries=0).chat(ASK, SamplingParams())
    assert "\n" not in str(error.value)


async def test_no_server():
    with pytest.raises(UserError, match="is the server running"):
        await OpenAILLM("m", "http://127.0.0.1:9/v1", max_retries=0).chat(ASK, SamplingParams())


async def test_requests_run_side_by_side_up_to_the_limit(server):
    server.replies, server.pause = [(200, answer())] * 6, 0.05
    llm = OpenAILLM("m", server.url, max_concurrency=2)
    completions = await asyncio.gather(*(llm.chat(ASK, SamplingParams()) for _ in range(6)))
    assert [c.text for c in completions] == ["hello"] * 6
    assert server.most_running == 2


def test_openai_itself_needs_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        OpenAILLM("m")


async def test_token_ids_are_not_to_be_had():
    llm = OpenAILLM("m", "http://127.0.0.1:9/v1")
    with pytest.raises(NotImplementedError, match="no token ids"):
        llm.render(ASK)
    with pytest.raises(NotImplementedError, match="no token ids"):
        await llm.complete([1], SamplingParams())
