"""An OpenAI-compatible server that misbehaves on a schedule: `davinci llm serve`'s application behind injected faults."""

import asyncio
import json
import threading
from contextlib import contextmanager

import uvicorn

FAULTS = {
    "429": "the server is busy",
    "500": "the server has an error",
    "slow": "the answer trickles in without end",
    "cut": "the answer's JSON ends in the middle",
    "closed": "the connection ends in the middle of the answer",
    "no_tools": "the server refuses requests with tools",
    "wrong_tool": "the answer calls a tool that was not offered",
    "cut_call": "the arguments of the answer's tool call end in the middle",
}


class Faulty:
    """An ASGI application that spoils the answers of another.

    `schedule` holds the next faults, one per chat request (None: answer well); afterwards `always` holds for all.
    `asked` keeps the bodies of all chat requests; `scripted`, where set, is the assistant message of every answer.
    """

    def __init__(self, app):
        self.app, self.schedule, self.always, self.asked, self.scripted = app, [], None, [], None

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            return await self.app(scope, receive, send)
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        request = json.loads(body)
        self.asked.append(request)
        fault = self.schedule.pop(0) if self.schedule else self.always
        if fault in ("429", "500"):
            return await respond(send, int(fault), {"error": {"message": FAULTS[fault]}})
        if fault == "no_tools" and request.get("tools"):
            return await respond(send, 400, {"error": {"message": '"auto" tool choice is not enabled here'}})
        status, answer = await self.answer(scope, body)
        await self.spoil(send, fault, status, answer)

    async def answer(self, scope, body):
        if self.scripted is not None:
            return 200, chat_completion(self.scripted(json.loads(body)) if callable(self.scripted) else self.scripted)
        sent = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def keep(message):
            sent.append(message)

        await self.app(scope, receive, keep)
        return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))

    async def spoil(self, send, fault, status, answer):
        calls = [c for choice in answer.get("choices", ()) for c in choice["message"].get("tool_calls") or ()]
        for call in calls:
            if fault == "wrong_tool":
                call["function"]["name"] = "delete_everything"
            if fault == "cut_call":
                call["function"]["arguments"] = call["function"]["arguments"][:-10]
        data = json.dumps(answer).encode()
        if fault == "cut":
            data = data[: len(data) // 2]
        if fault not in ("slow", "closed"):
            return await respond(send, status, data)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if fault == "closed":
            await send({"type": "http.response.body", "body": data[:20], "more_body": True})
            raise ConnectionError("closed on purpose")
        for byte in data:
            await send({"type": "http.response.body", "body": bytes([byte]), "more_body": True})
            await asyncio.sleep(0.05)


async def respond(send, status, answer):
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"retry-after-ms", b"1")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def chat_completion(message):
    """A whole answer around an assistant message, with 11 prompt and 7 answer tokens."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, **message}}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def call_message(name, arguments):
    """An assistant message with one tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": "c", "type": "function", "function": function}]}


@contextmanager
def running(app):
    """Serve an ASGI application on a free port; yields its /v1 address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.005)
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
