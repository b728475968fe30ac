"""The KernelGYM service as its clients meet it: a server process of its own, real candidates."""

import concurrent.futures
import json
import time

import httpx
import pytest
from serving import BROKEN, HANGING, KERNEL, REFERENCE, WRONG, Server, request

from davinci_kernel.gym import Outcome, Verdict

FINAL = ("completed", "failed", "timeout", "cancelled")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("gym") / "gym.sqlite", "--compile-slots", "1")
    yield httpx.Client(base_url=server.url, timeout=60)
    server.end()


def test_a_kernelgym_client_submits_polls_and_reads_as_it_always_has(server):
    payload = {
        "task_id": "parallel_task_000001_ab12cd34",
        "reference_code": REFERENCE,
        "kernel_code": KERNEL,
        "backend": "auto",
        "num_correct_trials": 2,
        "num_perf_trials": 10,
        "timeout": 60,
        "priority": "normal",
        "entry_point": "Model",
        "is_valid": None,
        "verbose_errors": True,
        "enable_profiling": True,
        "detect_decoy_kernel": True,
        "reference_backend": None,
        "use_reference_cache": True,
        "uuid": "17",
    }
    assert server.post("/evaluate", json=payload, params={"wait": 0}).status_code == 200
    while (status := server.get(f"/status/{payload['task_id']}").json())["status"] not in FINAL:
        time.sleep(0.1)
    assert status["status"] == "completed"
    result = server.get(f"/results/{payload['task_id']}")
    assert result.status_code == 200
    body = result.json()
    assert (body["compiled"], body["correctness"], body["decoy_kernel"]) == (True, True, False)
    assert body["reference_runtime"] > 0
    assert body["kernel_runtime"] > 0
    custom, total = (
        body["metadata"][f"{n}_in_profiling_us"] for n in ("custom_kernel_cuda_time", "total_kernel_run_time")
    )
    assert custom / total == pytest.approx(body["verdict"]["coverage"])
    assert body["verdict"]["provenance"]["settings"]["rounds"] == 3


@pytest.mark.parametrize(
    ("name", "code", "compiled", "decoy", "error"),
    [
        ("right", KERNEL, True, False, None),
        ("wrong", WRONG, True, False, "CORRECTNESS_ERROR"),
        ("broken", BROKEN, False, False, "COMPILATION_ERROR"),
        ("hanging", HANGING, True, False, "TIMEOUT_ERROR"),
        ("hack", KERNEL.replace("K.relu2(x, out, x.numel())", "out = torch.relu(x) * 2.0"), True, True, "DECOY_KERNEL_DETECTED"),
    ],
)  # fmt: skip
def test_a_verdict_in_kernelgyms_fields_and_whole(server, name, code, compiled, decoy, error):
    body = server.post("/evaluate", json=request(f"kind-{name}", code)).json()
    assert (body["status"], body["compiled"], body["decoy_kernel"]) == ("completed", compiled, decoy), body
    assert body["correctness"] == (error is None)
    assert body["error_code"] == error
    assert (body["error_message"] is None) == (error is None)
    verdict = Verdict.model_validate(body["verdict"])
    assert verdict.compiled == compiled
    assert (verdict.outcome is Outcome.HACK) == decoy


def test_a_bad_reference_is_no_verdict_on_the_candidate(server):
    body = server.post(
        "/evaluate", json=request("bad-reference") | {"reference_code": "raise ValueError('reference')"}
    ).json()
    assert (body["status"], body["error_code"], body["correctness"]) == ("failed", "VALIDATION_ERROR", False)


def test_a_task_id_names_one_task_once(server):
    first = server.post("/evaluate", json=request("same")).json()
    assert server.post("/evaluate", json=request("same", priority="high")).json() == first
    other = server.post("/evaluate", json=request("same", WRONG))
    assert (other.status_code, other.json()["error_code"]) == (409, "TASK_CONFLICT")
    again = server.post("/evaluate", json=request("same", force_refresh=True)).json()
    assert again["completed_at"] > first["completed_at"]
    assert server.get("/results/same").json() == again


def verdicts(server):
    """Evaluations that have given a verdict so far."""
    lines = server.get("/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("davinci_gym_verdicts_total"))


def test_an_identical_candidate_is_answered_from_the_record_unless_it_must_be_measured(server):
    code = KERNEL + "\n# identical\n"
    first = server.post("/evaluate", json=request("identical-1", code)).json()
    before = verdicts(server)
    second = server.post("/evaluate", json=request("identical-2", code)).json()
    assert second["verdict"] == first["verdict"]
    assert (first["metadata"]["cached"], second["metadata"]["cached"]) == (False, True)
    assert verdicts(server) == before
    third = server.post("/evaluate", json=request("identical-3", code, is_valid=True)).json()
    assert third["metadata"]["cached"] is False
    fourth = server.post("/evaluate", json=request("identical-4", code, settings={"num_correct_trials": 3})).json()
    assert fourth["verdict"]["provenance"]["settings"]["num_correct_trials"] == 3
    assert verdicts(server) == before + 2


def test_a_batch_is_answered_in_order_and_judges_duplicates_once(server):
    code = KERNEL + "\n# batch\n"
    tasks = [request(f"batch-{index}", code if index % 2 else WRONG + "\n# batch\n") for index in range(6)]
    before = verdicts(server)
    body = server.post("/evaluate/batch", json={"batch_id": "b", "tasks": tasks}).json()
    assert (body["total_tasks"], body["completed_tasks"], body["failed_tasks"]) == (6, 6, 0)
    assert [result["task_id"] for result in body["results"]] == [task["task_id"] for task in tasks]
    assert [result["correctness"] for result in body["results"]] == [False, True] * 3
    assert verdicts(server) == before + 2


def test_priorities_order_the_queue_and_waiting_tasks_know_their_place(server):
    for index in range(2):
        server.post("/evaluate", json=request(f"blocker-{index}", f"{HANGING}# {index}\n"), params={"wait": 0})
    for priority in ("low", "normal", "high"):
        task = request(f"waits-{priority}", f"{KERNEL}# {priority}\n", priority=priority)
        assert server.post("/evaluate", json=task, params={"wait": 0}).json()["status"] == "pending"
    places = {p: server.get(f"/status/waits-{p}").json()["queue_position"] for p in ("high", "normal", "low")}
    assert places == {"high": 1, "normal": 2, "low": 3}
    assert server.get("/queue/status").json()["pending"] == 3
    assert server.get("/results/waits-low").status_code == 202
    assert server.get("/health").json()["queue_status"] == {"pending": 3, "processing": 2, "places": 2}
    done = [server.get(f"/results/waits-{p}", params={"wait": 60}).json() for p in places]
    assert done[0]["completed_at"] < done[2]["completed_at"]


def test_a_cancelled_task_ends_and_frees_its_place(server):
    server.post(
        "/evaluate", json=request("cancelled", HANGING + "# c", settings={"run_timeout": 600.0}), params={"wait": 0}
    )
    with concurrent.futures.ThreadPoolExecutor() as threads:
        waiting = threads.submit(server.get, "/results/cancelled", params={"wait": 60})
        assert server.delete("/tasks/cancelled").status_code == 200
        assert waiting.result().json()["status"] == "cancelled"
    assert server.delete("/tasks/cancelled").status_code == 404
    assert server.get("/queue/status").json()["processing"] == 0
    assert server.post("/evaluate", json=request("after", KERNEL + "# after")).json()["correctness"] is True
    assert [device["judging"] for device in server.get("/health").json()["devices"]] == [0]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"task_id": "a/b"}, "task_id"),
        ({"kernel_code": ""}, "kernel_code"),
        ({"kernel_code": "\ud800"}, "kernel_code"),
        ({"backend": "hip"}, "backend"),
        ({"priority": 3}, "priority"),
        ({"num_correct_trials": 1000}, "num_correct_trials"),
        ({"settings": {"runs": 3}}, "settings.runs"),
        ({"settings": {"rounds": 100_000}}, "rounds"),
        ({"settings": {"run_timeout": float("inf")}}, "run_timeout"),
        ({"settings": {"run_timeout": float("nan")}}, "run_timeout"),
        ({"settings": {"memory_limit_gb": 1e6}}, "memory_limit_gb"),
    ],
)
def test_a_bad_request_is_refused_by_the_name_of_its_field(server, change, named):
    body = json.dumps(request("bad") | change)
    refused = server.post("/evaluate", content=body, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["error_code"]) == (400, "VALIDATION_ERROR")
    assert named in refused.json()["message"]
    assert server.get("/status/bad").status_code == 404


def test_a_body_that_is_no_json_object_is_refused(server):
    for content, kind in (("{", "application/json"), ("[1]", "application/json"), ("task_id=1", "text/plain")):
        refused = server.post("/evaluate", content=content, headers={"Content-Type": kind})
        assert (refused.status_code, refused.json()["error_code"]) == (400, "VALIDATION_ERROR")
