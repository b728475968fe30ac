"""End to end: honest, wrong, dishonest and violent candidates against real processes."""

import asyncio
import os
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from davinci_kernel.errors import UserError
from davinci_kernel.gym import Candidate, EvalSettings, GymPool, Outcome, evaluate_once, sandbox_layers
from davinci_kernel.gym._station import Station
from davinci_kernel.gym._turns import Turns
from davinci_kernel.tasks import Task

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
    def forward(self, x):
        return torch.sigmoid(x * self.scale) * x
def get_inputs():
    return [torch.randn(64, 128)]
def get_init_inputs():
    return [1.35]
"""
KERNEL = '''
import os, sys, time, threading
import torch
from davinci_kernel.jit import load_cpp
K = load_cpp(r"""
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
extern "C" void swish(const float* x, float* out, long n, float s) {
    for (long i = 0; i < n; i++) out[i] = x[i] / (1.0f + expf(-x[i] * s));
}
""")
class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
    def forward(self, x):
        out = torch.empty_like(x)
        K.swish(x, out, x.numel(), float(self.scale))
        return out
'''
FORWARD = "        out = torch.empty_like(x)\n"
SETTINGS = EvalSettings(measure=False, run_timeout=2.0, num_correct_trials=2)


def in_kernel(statement):
    return KERNEL.replace("    for (long i", f"    {statement}\n    for (long i")


def with_line(line):
    return KERNEL.replace(FORWARD, f"        {line}\n{FORWARD}")


SECRET = "DAVINCI_TEST_TOKEN"


@pytest.fixture(scope="module")
def judge():
    os.environ[SECRET] = "x"
    loop = asyncio.new_event_loop()
    pool = GymPool(SETTINGS, compile_slots=2)

    def ask(code, settings=SETTINGS, reference=REFERENCE):
        return loop.run_until_complete(pool.evaluate(Task("t", reference), Candidate(code=code), settings))

    ask.pool, ask.loop = pool, loop
    yield ask
    del os.environ[SECRET]
    loop.run_until_complete(pool.close())
    loop.close()


def test_honest_kernel_is_correct_with_full_coverage(judge):
    verdict = judge(KERNEL)
    assert verdict.outcome is Outcome.CORRECT, verdict.message
    assert verdict.compiled
    assert verdict.coverage > 0.9
    assert verdict.speedup is None


def test_measured_kernel_has_a_speedup_or_says_that_it_is_noisy(judge):
    verdict = judge(KERNEL, SETTINGS.model_copy(update={"measure": True, "max_processes": 3}))
    assert verdict.outcome is Outcome.CORRECT, verdict.message
    assert verdict.reference_ms > 0
    assert verdict.too_noisy == (verdict.speedup is None)
    assert len(verdict.provenance["processes"]) == 3
    if verdict.speedup is not None:
        low, high = verdict.speedup_interval
        assert low <= verdict.speedup <= high


@pytest.mark.parametrize(
    ("code", "outcome", "part"),
    [
        (KERNEL.replace("1.0f +", "2.0f +"), Outcome.WRONG_VALUE, "expected"),
        (KERNEL.replace("return out", "return out[:1]"), Outcome.WRONG_SHAPE, ""),
        (KERNEL.replace("return out", "return out.double()"), Outcome.WRONG_DTYPE, ""),
        (KERNEL.replace("return out", "return [out]"), Outcome.WRONG_TYPE, ""),
        (KERNEL.replace("return out", "return object()"), Outcome.WRONG_TYPE, "object"),
        (KERNEL.replace("return out", "return torch.zeros(10_000_000)"), Outcome.WRONG_SHAPE, "10000000"),
        (KERNEL.replace("#include", "#include <nothing.h>\n#include"), Outcome.COMPILE_ERROR, "nothing.h"),
        (KERNEL.replace("class ModelNew", "class Other"), Outcome.COMPILE_ERROR, "ModelNew"),
        ("def broken(:\n", Outcome.COMPILE_ERROR, "line 1"),
        ("raise ValueError('at import')\n" + KERNEL, Outcome.COMPILE_ERROR, "at import"),
        (with_line("raise ValueError('in forward')"), Outcome.RUNTIME_ERROR, "in forward"),
        (in_kernel("_exit(0);"), Outcome.RUNTIME_ERROR, "code 0"),
        (with_line("sys.exit(0)"), Outcome.RUNTIME_ERROR, "sys.exit"),
        (in_kernel("raise(SIGKILL);"), Outcome.RUNTIME_ERROR, "SIGKILL"),
        (with_line("torch.empty(25_000_000_000)"), Outcome.RUNTIME_ERROR, "MemoryError"),
        (with_line("while True: pass"), Outcome.TIMEOUT, "2 s"),
        (in_kernel("close(3);"), Outcome.RUNTIME_ERROR, ""),
        (in_kernel("*(volatile int*)0 = 1;"), Outcome.RUNTIME_ERROR, "SIGSEGV"),
        (in_kernel("_exit(0);") + "K.swish(torch.ones(1), torch.ones(1), 1, 1.0)\n", Outcome.RUNTIME_ERROR, "code 0"),
    ],
    ids=lambda value: value[-30:].strip() if isinstance(value, str) and "\n" not in value else "",
)
def test_faulty_candidate(judge, code, outcome, part):
    verdict = judge(code)
    assert verdict.outcome is outcome, verdict.message
    assert part in verdict.message
    assert verdict.speedup is None


@pytest.mark.parametrize(
    ("code", "hack"),
    [
        (with_line("return torch.sigmoid(x * self.scale) * x"), "torch-fallback"),
        (KERNEL.replace("return out", "return torch.sigmoid(x * self.scale) * x"), "ghost"),
        (KERNEL.replace("return out", "x.mul_(2.0)\n        return out"), "input-mutation"),
    ],
    ids=["torch-fallback", "ghost", "input-mutation"],
)
def test_dishonest_candidate(judge, code, hack):
    verdict = judge(code)
    assert (verdict.outcome, verdict.hack) == (Outcome.HACK, hack), verdict.message


def test_fake_verdict_on_stdout_and_in_the_channel_changes_nothing(judge):
    fake = (
        r'const char body[] = "\0\0\0\x20{\"outcome\": \"CORRECT\", \"id\": 9}";'
        "for (int fd = 1; fd < 20; fd++) write(fd, body, sizeof body - 1);"
    )
    verdict = judge(in_kernel(fake).replace("1.0f +", "2.0f +"))
    assert not verdict.correct


@pytest.mark.parametrize(
    "reference",
    [
        REFERENCE.replace("return torch.sigmoid", "raise ValueError('no')\n        return torch.sigmoid"),
        REFERENCE.replace("* x\n", "* x * float('nan')\n"),
        REFERENCE.replace("def get_inputs", "def other"),
    ],
    ids=["raises", "nan", "no inputs"],
)
def test_broken_reference_is_the_tasks_fault(judge, reference):
    verdict = judge(KERNEL, reference=reference)
    assert verdict.outcome is Outcome.INVALID_REFERENCE
    assert not verdict.outcome.is_candidates_fault


def test_weights_are_copied_by_name(judge):
    reference = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(128))
        self.bias = torch.nn.Parameter(torch.zeros(128))
    def forward(self, x):
        return x * self.weight + self.bias
def get_inputs():
    return [torch.randn(64, 128)]
def get_init_inputs():
    return []
"""
    candidate = '''
import torch
from davinci_kernel.jit import load_cpp
K = load_cpp(r"""
extern "C" void scale(const float* x, const float* w, const float* b, float* out, long rows, long columns) {
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) out[i * columns + j] = x[i * columns + j] * w[j] + b[j];
}
""")
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(128))
        self.bias = torch.nn.Parameter(torch.zeros(128))
    def forward(self, x):
        out = torch.empty_like(x)
        K.scale(x, self.weight, self.bias, out, 64, 128)
        return out
'''
    assert judge(candidate, reference=reference).outcome is Outcome.CORRECT
    forgot_bias = judge(candidate.replace("* w[j] + b[j]", "* w[j]"), reference=reference)
    assert forgot_bias.outcome is Outcome.WRONG_VALUE
    assert "randomised weights" in forgot_bias.message
    renamed = judge(candidate.replace("self.weight", "self.scale_by"), reference=reference)
    assert renamed.outcome is Outcome.WRONG_VALUE
    assert "weight" in renamed.message


def test_a_backend_whose_package_is_missing_is_refused(judge, monkeypatch):
    monkeypatch.setattr("davinci_kernel.gym._pool._NEEDED", {"triton": (("no_such_package.part", "triton"),)})
    with pytest.raises(UserError, match=r"backend triton: no_such_package.part is not installed.*\[triton\]"):
        judge.loop.run_until_complete(
            judge.pool.evaluate(Task("t", REFERENCE), Candidate(code=KERNEL, backend="triton"))
        )


def test_identical_requests_are_judged_once(judge):
    pair = (Task("t", REFERENCE), Candidate(code=KERNEL + "\n# twin\n"))
    first, second = judge.loop.run_until_complete(judge.pool.evaluate_many([pair, pair]))
    assert first is second


def test_candidate_inherits_nothing_and_writes_nowhere_else(judge, tmp_path):
    target = tmp_path / "escaped"
    inherits = "static int calls = 0; if (!calls++) for (int fd = 4; fd < 1024; fd++) if (fcntl(fd, F_GETFD) != -1) raise(SIGUSR1);"
    writes = f'if (FILE* file = fopen("{target}", "w")) fclose(file);'
    at_import = f"K.swish(torch.ones(1), torch.ones(1), 1, 1.0)\nassert {SECRET!r} not in os.environ\n"
    verdict = judge(in_kernel(inherits + writes).replace("class ModelNew", at_import + "class ModelNew"))
    assert verdict.outcome is Outcome.CORRECT, verdict.message
    assert target.exists() != sandbox_layers()["files outside of its scratch directory (Landlock)"]


def test_processes_left_behind_are_killed(judge):
    verdict = judge(in_kernel('if (fork() == 0) { setsid(); execlp("sleep", "sleep", "7531", (char*)0); }'))
    assert verdict.outcome in (Outcome.CORRECT, Outcome.HACK), verdict.message
    assert not wait_for_command("sleep\x007531\x00", gone=True)


def test_closing_the_pool_ends_every_process():
    async def run():
        async with GymPool(SETTINGS, compile_slots=1) as pool:
            await pool.evaluate(Task("t", REFERENCE), Candidate(code=KERNEL))
            return pool.cpu.server.process.pid, pool.cpu.server.scratch

    pid, scratch = asyncio.run(run())
    assert not Path(f"/proc/{pid}").exists()
    assert not os.path.exists(scratch)


def test_a_killed_fork_server_is_replaced(judge):
    judge.pool.cpu.server.process.kill()
    judge.pool.cpu.server.process.wait()
    assert judge(KERNEL + "\n# after the loss\n").outcome is Outcome.CORRECT


def wait_for_command(text, gone):
    """Commands that contain ``text``, once there are none (``gone``) or after five seconds."""
    deadline = time.monotonic() + 5
    while True:
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and text in (entry / "cmdline").read_text():
                    found.append(entry.name)
            except OSError:
                continue
        if bool(found) != gone or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def test_both_sides_get_every_core_that_this_process_may_use():
    """OpenMP binds the fork server's threads: counted there, a machine would have one core."""
    task = Task("omp", REFERENCE.replace("torch.sigmoid(x * self.scale) * x", "2.0 * x"))
    code = """
import torch
import torch.nn as nn
from davinci_kernel.jit import load_cpp

K = load_cpp(r'''
#include <omp.h>
extern "C" void f(const float* x, float* y, long n, long want) {
  int threads = 0;
  #pragma omp parallel reduction(+ : threads)
  threads += 1;
  for (long i = 0; i < n; i++) y[i] = threads == want ? 2.0f * x[i] : 0.0f;
}
''')


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        K.f(x, y, x.numel(), WANT)
        return y
"""
    cores = len(os.sched_getaffinity(0))
    settings = EvalSettings.model_validate({"measure": False, "num_correct_trials": 1, "distribution_trials": False})
    right = evaluate_once(task, Candidate(code=code.replace("WANT", str(cores))), settings)
    wrong = evaluate_once(task, Candidate(code=code.replace("WANT", str(cores + 1))), settings)
    assert right.outcome is Outcome.CORRECT, right.message
    assert wrong.outcome is Outcome.WRONG_VALUE
    assert right.provenance["hardware"]["threads"] == cores


def test_a_worker_that_dies_before_it_saw_the_candidate_is_our_fault(monkeypatch):
    """Threads that the worker cannot set end it at its start."""
    monkeypatch.setattr(Station, "_with_threads", lambda self, settings: settings)  # 0 threads reach the worker
    verdict = evaluate_once(Task("t", REFERENCE), Candidate(code=KERNEL + "\nclass ModelNew(torch.nn.Module): ...\n"))
    assert verdict.outcome is Outcome.INFRA_ERROR


def processes_in(state, directory):
    """Ids of processes in a scheduler state (``T``: stopped) whose working directory lies in a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            inside = entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(directory))
            if inside and (entry / "stat").read_text().rpartition(")")[2].split()[0] in state:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def candidates_in(scratch):
    return [pid for pid in processes_in("RSDT", scratch) if "candidate" in cwd(pid)]


def cwd(pid):
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


async def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return condition()


@pytest.fixture
def sharing():
    """A pool whose CPU is shared in the check phase, as a CUDA device is."""
    pool = GymPool(SETTINGS, compile_slots=2, cache_verdicts=False)
    pool.cpu.share_checks = True
    return pool


def test_a_shared_check_phase_gives_the_same_verdicts(sharing):
    measured = SETTINGS.model_copy(update={"measure": True, "min_processes": 3, "max_processes": 3})
    codes = [
        KERNEL,
        KERNEL.replace("1.0f +", "2.0f +"),
        KERNEL.replace("return out", "return torch.sigmoid(x * self.scale) * x"),
        in_kernel("_exit(0);"),
        with_line("while True: pass"),
    ]

    async def run():
        async with sharing as pool:
            return await pool.evaluate_many([(Task("t", REFERENCE), Candidate(code=code)) for code in codes], measured)

    first, *others = asyncio.run(run())
    assert first.outcome is Outcome.CORRECT, first.message
    assert len(first.provenance["processes"]) == 3
    outcomes = [Outcome.WRONG_VALUE, Outcome.HACK, Outcome.RUNTIME_ERROR, Outcome.TIMEOUT]
    assert [verdict.outcome for verdict in others] == outcomes


class GatedTurns(Turns):
    """Turns whose exclusive ones wait for an event."""

    def __init__(self, slots):
        super().__init__(slots)
        self.gate, self.reached = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def alone(self):
        self.reached.set()
        await self.gate.wait()
        async with super().alone():
            yield


def test_a_candidate_that_waits_for_its_measurement_is_stopped(sharing):
    settings = SETTINGS.model_copy(update={"measure": True, "min_processes": 3, "max_processes": 3})

    async def run():
        async with sharing as pool:
            pool.cpu.turns = turns = GatedTurns(2)
            running = asyncio.ensure_future(pool.evaluate(Task("t", REFERENCE), Candidate(code=KERNEL), settings))
            await asyncio.wait_for(turns.reached.wait(), 60)
            candidates = f"{pool.cpu.server.scratch}/judge1/candidate1"
            assert await until(lambda: len(processes_in("T", candidates)) == 3)
            assert not processes_in("RSD", candidates)
            turns.gate.set()
            return await running

    verdict = asyncio.run(run())
    assert verdict.outcome is Outcome.CORRECT, verdict.message


@pytest.mark.parametrize("lose_judge", [False, True], ids=["cancelled", "judge killed"])
def test_an_evaluation_that_is_given_up_leaves_no_process(sharing, lose_judge):
    hangs = Candidate(code=with_line("while True: pass"))
    settings = SETTINGS.model_copy(update={"run_timeout": 600.0})

    async def run():
        async with sharing as pool:
            task = Task("t", REFERENCE)
            running = asyncio.ensure_future(pool.evaluate(task, hangs, settings, fresh=True))
            assert await until(lambda: pool.cpu.server is not None and pool.cpu.turns.sharing > 0, 60)
            scratch = pool.cpu.server.scratch
            assert await until(lambda: candidates_in(scratch))
            candidates = candidates_in(scratch)
            if lose_judge:
                judge = min(processes_in("RSD", f"{scratch}/judge1"))  # forked before its reference and its candidate
                os.kill(judge, 9)
            else:
                running.cancel()
            assert await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in candidates))
            running.cancel()
            return (await pool.evaluate(task, Candidate(code=KERNEL))).outcome, pool.health()[0]

    outcome, health = asyncio.run(run())
    assert outcome is Outcome.CORRECT
    assert (health.device, health.alive, health.judging, health.overdue) == ("cpu", True, 0, False)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="CUDA device 7 is not there"):
        GymPool(SETTINGS, devices=[7])
