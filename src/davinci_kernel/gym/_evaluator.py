"""The trusted judge's process: forked from the fork server, asked by the pool, undisturbed by the trainer's load.

Requests: ``attach`` with a fork server connection; then for each candidate ``compile`` {task, candidate, settings, device},
``check`` {ahead} and ``measure``, each -> {verdict} if that is the end of it, else {}. A failure of the judge itself is a
verdict INFRA_ERROR.
"""

from __future__ import annotations

import os
import socket
import traceback
from typing import Any

from davinci_kernel.gym._channel import Channel, close_all
from davinci_kernel.gym._judge import Judge
from davinci_kernel.gym._processes import ForkClient
from davinci_kernel.gym._types import Candidate, EvalSettings, Outcome, Verdict
from davinci_kernel.tasks import Task


def serve(channel: Channel) -> None:
    """Answer until the channel closes."""
    request, fds = channel.receive(max_fds=1)
    judge = Judge(ForkClient(Channel(socket.socket(fileno=fds[0]))), os.getcwd())
    channel.send({"id": request["id"]})
    while True:
        request, extra = channel.receive()
        close_all(extra)
        verdict = _answer(judge, request)
        reply: dict[str, Any] = {"verdict": verdict.model_dump(mode="json")} if verdict else {}
        channel.send(reply | {"id": request["id"]})


def _answer(judge: Judge, request: dict[str, Any]) -> Verdict | None:
    try:
        if request["op"] == "check":
            return judge.check(request["ahead"])
        if request["op"] == "measure":
            return judge.measure()
        task = Task(**request["task"])
        settings = EvalSettings.model_validate(request["settings"])
        return judge.compile(task, Candidate.model_validate(request["candidate"]), settings, request["device"])
    except Exception as error:
        where = traceback.format_exc(limit=-6)
        judge.abandon()
        return Verdict(
            outcome=Outcome.INFRA_ERROR, message=f"{type(error).__name__}: {error}", provenance={"trace": where}
        )
