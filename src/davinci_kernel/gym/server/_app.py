"""The HTTP API: KernelGYM's paths, status codes and fields over a `GymService`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException

from davinci_kernel import __version__

from .._pool import missing_package
from .._wire import (
    BatchEvaluationRequest,
    BatchEvaluationResponse,
    ErrorResponse,
    EvaluationRequest,
    EvaluationResponse,
    TaskStatusResponse,
    iso_time,
    verdict_fields,
)
from ._limits import BodyLimit, Limits
from ._metrics import Metrics
from ._service import Draining, GymService, QueueFull, TaskConflict
from ._store import StoredTask

_TEND_SECONDS = 5.0
_DAY = 86400.0
_WAIT_SHARE = 0.9
"""A submission is answered after this share of its own timeout at the latest: KernelGYM's clients read no longer than that."""
_CODES = {400: "VALIDATION_ERROR", 401: "UNAUTHORIZED", 404: "NOT_FOUND", 409: "TASK_CONFLICT", 413: "BODY_TOO_LARGE"}
_CODES |= {429: "QUEUE_FULL", 503: "DRAINING"}

_TaskId = Annotated[str, Path(max_length=100)]
_Wait = Annotated[float | None, Query(ge=0, le=3600, description="Seconds to wait for the result at most.")]
_bearer = HTTPBearer(auto_error=False, description="Only if the server was started with a token.")


class Health(BaseModel):
    """`healthy`, `degraded` (a device is dead or stuck; `devices` says which) or `draining`."""

    status: str
    timestamp: str
    gpu_status: dict[str, dict[str, Any]]
    queue_status: dict[str, int]
    memory_usage: dict[str, float]
    active_tasks: int
    total_processed: int
    uptime: float
    devices: list[dict[str, Any]]
    version: str


def create_app(
    service: GymService,
    *,
    token: str = "",
    limits: Limits | None = None,
    metrics: Metrics | None = None,
    keep_days: float = 30.0,
    drain_seconds: float = 60.0,
) -> FastAPI:
    """The application. It starts the service and drains it at the end; pool and store stay the caller's.

    Args:
        token: what clients must send as ``Authorization: Bearer``; empty: nothing.
        limits: of requests.
        metrics: shown on ``/metrics``, those that the service was given as ``on_verdict``.
        keep_days: results on record are dropped after this.
        drain_seconds: what is under way at the end may take so long.
    """
    limits, metrics = limits or Limits(), metrics or Metrics()
    metrics.watch(service)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        tending = asyncio.create_task(_tend(service, keep_days))
        yield
        tending.cancel()
        await service.drain(drain_seconds)

    app = FastAPI(title="KernelGYM (daVinci-kernel)", version=__version__, lifespan=lifespan)
    app.state.service, app.state.limits, app.state.metrics = service, limits, metrics
    app.state.token, app.state.started = token, time.time()
    app.include_router(_open)
    app.include_router(_guarded)
    too_large = f"the body is larger than {limits.body_bytes} bytes; send less at once"
    app.add_middleware(BodyLimit, body_bytes=limits.body_bytes, respond=lambda: _error(413, too_large))
    app.add_exception_handler(TaskConflict, lambda request, error: _error(409, str(error)))
    app.add_exception_handler(Draining, lambda request, error: _error(503, str(error), {"Retry-After": "5"}))
    app.add_exception_handler(QueueFull, _queue_full)
    app.add_exception_handler(StarletteHTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


async def _tend(service: GymService, keep_days: float) -> None:
    """Heal devices; drop what is too old."""
    while True:
        await service.pool.heal()
        service.store.forget_before(time.time() - keep_days * _DAY)
        await asyncio.sleep(_TEND_SECONDS)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    code = _CODES.get(status, "HTTP_ERROR")
    body = ErrorResponse(error=code.title().replace("_", ""), message=message, error_code=code, timestamp=_now())
    return JSONResponse(body.model_dump(), status, {"X-Error-Code": code, **(headers or {})})


def _queue_full(request: Request, error: Exception) -> Response:
    assert isinstance(error, QueueFull)
    return _error(429, str(error), {"Retry-After": str(error.retry_after)})


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    return _error(error.status_code, str(error.detail), dict(error.headers or {}))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["loc"] == ("body",):
        return _error(400, "the body must be a JSON object, sent with the header Content-Type: application/json")
    return _error(400, f"{field}: {first['msg']}" if field else str(first["msg"]))


def _now() -> str:
    return iso_time(time.time())


def _service(request: Request) -> GymService:
    return request.app.state.service


def _authorised(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> None:
    token = request.app.state.token
    given = credentials.credentials if credentials else ""
    if token and not secrets.compare_digest(given.encode(), token.encode()):
        why = "the token is wrong" if given else "a token is needed"
        raise HTTPException(401, f"{why}; send the header Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})


_Service = Annotated[GymService, Depends(_service)]
_ERRORS: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorResponse}}
_open = APIRouter(responses=_ERRORS)
_guarded = APIRouter(dependencies=[Depends(_authorised)], responses=_ERRORS)


@_open.get("/")
async def root() -> dict[str, str]:
    """What answers here."""
    return {"name": "KernelGYM", "version": __version__, "description": "daVinci-kernel", "timestamp": _now()}


@_open.get("/health")
async def health(service: _Service, request: Request) -> Health:
    """Devices, queue and memory as they are now. Always 200 while the server answers; read `status`."""
    devices = service.pool.health()
    sound = all(device.alive and not device.overdue for device in devices)
    counts = service.store.counts()
    return Health(
        status="draining" if service.draining else "healthy" if sound else "degraded",
        timestamp=_now(),
        gpu_status={device.device: asdict(device) for device in devices if device.device != "cpu"},
        queue_status={"pending": service.waiting, "processing": service.under_way, "places": service.places},
        memory_usage={"server_mb": _resident_mb()},
        active_tasks=counts.get("pending", 0),
        total_processed=sum(counts.get(state, 0) for state in ("completed", "failed")),
        uptime=round(time.time() - request.app.state.started, 3),
        devices=[asdict(device) for device in devices],
        version=__version__,
    )


@_guarded.post("/evaluate")
async def evaluate(
    service: _Service, request: Request, asked: EvaluationRequest, wait: _Wait = None
) -> EvaluationResponse:
    """Submit a candidate and wait for its result.

    The answer comes after `wait` seconds at the latest (default: nine tenths of `timeout`), then with status `pending` or
    `processing`; ask `/status` and `/results` for the rest, or send the same again.
    """
    _within(request, [asked])
    service.submit([asked])
    await service.wait([asked.task_id], _WAIT_SHARE * asked.timeout if wait is None else wait)
    return _response(service, _known(service, asked.task_id))


@_guarded.post("/evaluate/batch")
async def evaluate_batch(
    service: _Service, request: Request, asked: BatchEvaluationRequest, wait: _Wait = None
) -> BatchEvaluationResponse:
    """Submit candidates, all or none, and wait as `/evaluate` does; default: nine tenths of the longest `timeout`."""
    _within(request, asked.tasks)
    submitted = _now()
    service.submit(asked.tasks)
    ids = [task.task_id for task in asked.tasks]
    longest = max(task.timeout for task in asked.tasks)
    await service.wait(ids, _WAIT_SHARE * longest if wait is None else wait)
    results = [_response(service, _known(service, task_id)) for task_id in ids]
    completed = sum(result.status == "completed" for result in results)
    failed = sum(result.status in ("failed", "cancelled") for result in results)
    done = completed + failed == len(results)
    return BatchEvaluationResponse(
        batch_id=asked.batch_id,
        total_tasks=len(results),
        completed_tasks=completed,
        failed_tasks=failed,
        results=results,
        batch_status="completed" if done else "processing",
        submitted_at=submitted,
        completed_at=_now() if done else None,
    )


@_guarded.get("/status/{task_id}")
async def status(service: _Service, task_id: _TaskId) -> TaskStatusResponse:
    """How far a task is."""
    task = _known(service, task_id)
    result = _response(service, task)
    left = service.seconds_left(task_id)
    return TaskStatusResponse(
        task_id=task_id,
        status=result.status,
        progress={"pending": 0.0, "processing": 50.0}.get(result.status, 100.0),
        queue_position=service.position(task_id),
        estimated_completion=None if left is None else iso_time(time.time() + left),
        error_message=result.error_message,
        submitted_at=iso_time(task.submitted),
        started_at=None if task.started is None else iso_time(task.started),
        completed_at=result.completed_at,
    )


@_guarded.get("/results/{task_id}", responses={202: {"model": EvaluationResponse}})
async def results(service: _Service, response: Response, task_id: _TaskId, wait: _Wait = 0.0) -> EvaluationResponse:
    """A task's result; 202 as long as there is none."""
    _known(service, task_id)
    await service.wait([task_id], wait or 0.0)
    result = _response(service, _known(service, task_id))
    if result.status in ("pending", "processing"):
        response.status_code = 202
    return result


@_guarded.delete("/tasks/{task_id}")
async def cancel(service: _Service, task_id: _TaskId) -> dict[str, str]:
    """Give up a task that is not finished."""
    if not service.cancel(task_id):
        raise HTTPException(404, f"task {task_id} is not known, or is finished")
    return {"message": f"task {task_id} cancelled"}


@_guarded.get("/queue/status")
async def queue_status(service: _Service, request: Request) -> dict[str, Any]:
    """How much waits, and the longest queue that is accepted."""
    return {
        "pending": service.waiting,
        "processing": service.under_way,
        "limit": service.max_queue,
        "worker_queues": {device.device: device.judging for device in service.pool.health()},
        "mean_seconds": service.mean_seconds,
    }


@_guarded.get("/workers/status")
async def workers_status(service: _Service) -> dict[str, dict[str, Any]]:
    """Every device by its name."""
    return {
        device.device: {
            "device": device.device,
            "status": "offline" if not device.alive else "stuck" if device.overdue else "online",
            "last_heartbeat": _now(),
            "hostname": os.uname().nodename,
            **asdict(device),
        }
        for device in service.pool.health()
    }


@_guarded.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Prometheus text."""
    return PlainTextResponse(request.app.state.metrics.render(), media_type="text/plain; version=0.0.4")


def _within(request: Request, asked: Sequence[EvaluationRequest]) -> None:
    service, limits = _service(request), request.app.state.limits
    for task in asked:
        excess = limits.excess(task.eval_settings(service.pool.settings))
        backend = task.candidate().backend
        if not excess and (missing := missing_package(backend)):
            excess = f"backend {backend}: {missing} on the server"
        if excess:
            raise HTTPException(400, f"task {task.task_id}: {excess}")


def _known(service: GymService, task_id: str) -> StoredTask:
    task = service.store.get(task_id)
    if task is None:
        raise HTTPException(404, f"task {task_id} is not known")
    return task


def _response(service: GymService, task: StoredTask) -> EvaluationResponse:
    fields: dict[str, Any] = {"status": task.state, "submitted_at": iso_time(task.submitted)}
    if task.completed is None:
        fields["status"] = "processing" if service.is_under_way(task.task_id) else "pending"
        return EvaluationResponse(task_id=task.task_id, **fields)
    fields["completed_at"] = iso_time(task.completed)
    if task.verdict is None:
        fields |= {"error_message": "the task was cancelled", "error_code": "CANCELLED"}
        return EvaluationResponse(task_id=task.task_id, **fields)
    fields |= verdict_fields(task.verdict, task.request.verbose_errors is not False)
    fields["metadata"] |= {"cached": task.started is None, "backend": task.request.candidate().backend}
    fields["processing_time"] = 0.0 if task.started is None else round(task.completed - task.started, 3)
    return EvaluationResponse(task_id=task.task_id, **fields)


def _resident_mb() -> float:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
