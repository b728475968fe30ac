"""The gym on a CUDA device: every adversarial file, repeatability, cache policy, streams, compile times.

    python benchmarks/gpu_gym.py [--only adversarial,repeat,cache,streams,compile] [--backends triton,cuda] [--match TEXT]

Prints Markdown tables; a line per verdict while it runs.
"""

import argparse
import asyncio
import re
import statistics
import sys
import time
from pathlib import Path

from davinci_kernel.gym import Candidate, EvalSettings, GymPool
from davinci_kernel.tasks import Task

ROOT = Path(__file__).resolve().parent.parent / "tests" / "adversarial"
QUICK = EvalSettings(num_correct_trials=2, min_processes=2, max_processes=2, rounds=5, run_timeout=10.0)
ONE_PROCESS = QUICK.model_copy(update={"min_processes": 1, "max_processes": 1})
HONEST = "honest_plain.py"


def header(text: str, name: str) -> str:
    match = re.search(rf"^# {name}: (.+)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def fits(verdict, required: str) -> bool:
    for wanted in required.split("|"):
        outcome, _, detail = wanted.partition(":")
        if verdict.outcome.value == outcome and (
            not detail
            or verdict.hack == detail
            or (detail == "low-coverage" and verdict.coverage is not None and verdict.coverage < 0.5)
        ):
            return True
    return False


def task_of(text: str) -> Task:
    name = header(text, "task")
    return Task(f"adversarial/{name}", (ROOT / "gpu_tasks" / name).read_text())


async def adversarial(backends: list[str], match: str) -> None:
    print("| backend | file | required | got | s | message |\n|---|---|---|---|---|---|")
    wrong = []
    for backend in backends:
        files = [p for p in sorted((ROOT / backend).glob("*.py")) if re.search(match, f"{backend}/{p.name}")]
        texts = [(p, p.read_text()) for p in files]
        texts = [(p, t) for p, t in texts if header(t, "required") != "NONE"]

        async with GymPool(ONE_PROCESS, cache_verdicts=False) as gym:

            async def one(path: Path, text: str, gym: GymPool = gym, backend: str = backend) -> None:
                started = time.time()
                verdict = await gym.evaluate(task_of(text), Candidate(code=text, backend=backend))
                good = fits(verdict, header(text, "required"))
                got = verdict.outcome.value + (f":{verdict.hack}" if verdict.hack else "")
                cover = "" if verdict.coverage is None else f" {verdict.coverage:.2f}"
                speed = "" if verdict.speedup is None else f" {verdict.speedup:.2f}x"
                row = f"| {backend} | {path.stem} | {header(text, 'required')} | {got}{cover}{speed} | {time.time() - started:.1f} | {verdict.message.splitlines()[0][:110] if verdict.message else ''} |"
                print(row if good else row.replace("| ", "| **", 1) + " **WRONG**", flush=True)
                if not good:
                    wrong.append(
                        f"{backend}/{path.stem}: {verdict.message[:600]} {verdict.provenance.get('trace', '')[-900:]}"
                    )

            await asyncio.gather(*(one(path, text) for path, text in texts))
    print(f"\n{len(wrong)} wrong")
    for line in wrong:
        print("-", line)


async def repeat(backends: list[str], times: int = 20) -> None:
    settings = QUICK.model_copy(update={"min_processes": 3, "max_processes": 6, "rounds": 8})
    print(
        "\n| honest candidate | speedup, median | min | max | spread (max - min) / median | s per verdict |\n|---|---|---|---|---|---|"
    )
    for backend in backends:
        text = (ROOT / backend / HONEST).read_text()
        async with GymPool(settings, cache_verdicts=False) as gym:
            started = time.time()
            found = [
                (await gym.evaluate(task_of(text), Candidate(code=text, backend=backend), fresh=True)).speedup
                for _ in range(times)
            ]
            seconds = (time.time() - started) / times
        known = [s for s in found if s]
        middle = statistics.median(known)
        print(
            f"| {backend}, {len(known)} of {times} timed | {middle:.3f} | {min(known):.3f} | {max(known):.3f} "
            f"| {(max(known) - min(known)) / middle:.1%} | {seconds:.2f} |",
            flush=True,
        )


COPY_TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 1.5
def get_inputs():
    return [torch.randn(1024, 2048)]
def get_init_inputs():
    return []
"""
COPY = '''import torch
from davinci_kernel.jit import load_cuda
K = load_cuda(r"""extern "C" __global__ void scale(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 1.5f;
}""")
SIDE = torch.cuda.Stream() if %s else None
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        if SIDE is None:
            K.scale((n + 255) // 256, 256, x, y, n)
            return y
        current = torch.cuda.current_stream()
        SIDE.wait_stream(current)
        with torch.cuda.stream(SIDE):
            K.scale((n + 255) // 256, 256, x, y, n)
        current.wait_stream(SIDE)
        return y
'''


async def streams() -> None:
    settings = QUICK.model_copy(update={"min_processes": 4, "max_processes": 6, "rounds": 10})
    print("\n| 8 MB scale | kernel ms | speedup | interval |\n|---|---|---|---|")
    async with GymPool(settings, cache_verdicts=False) as gym:
        for name, side in (("current stream", False), ("side stream, waited for", True)):
            verdict = await gym.evaluate(Task("scale", COPY_TASK), Candidate(code=COPY % side, backend="cuda"))
            interval = verdict.speedup_interval or (0.0, 0.0)
            print(
                f"| {name} ({verdict.outcome.value} {verdict.message[:80]}) | {verdict.kernel_ms or 0:.4f} | {verdict.speedup or 0:.3f} "
                f"| {interval[0]:.3f} to {interval[1]:.3f} |",
                flush=True,
            )


def cache() -> None:
    """An 8 MB copy with the L2 flushed before each call, and without."""
    import torch

    from davinci_kernel.gym._device import CudaDevice

    device = CudaDevice()
    x = torch.randn(1024, 2048, device="cuda")
    times = {}
    for name, size in (("cold (flushed)", None), ("warm (not flushed)", 4)):
        if size:
            device._flush = torch.empty(size, dtype=torch.int32, device="cuda")
        for _ in range(20):
            device.timed(torch.clone, (x,))
        times[name] = [device.timed(torch.clone, (x,)).ns / 1e3 for _ in range(100)]
    print("\n| clone of 8 MB | median us | 10 % | 90 % |\n|---|---|---|---|")
    for name, values in times.items():
        values.sort()
        print(f"| {name} | {statistics.median(values):.2f} | {values[10]:.2f} | {values[90]:.2f} |", flush=True)


def compile_times() -> None:
    import torch
    from torch.utils.cpp_extension import load_inline

    from davinci_kernel.jit._cuda import compile_cubin

    torch.cuda.init()
    source = (ROOT / "cuda" / "honest_plain.py").read_text().split('r"""')[1].split('"""')[0]
    found = []
    for index in range(5):
        started = time.time()
        compile_cubin(source + f"// {index}", ())
        found.append(time.time() - started)
    print(f"\nload_cuda (NVRTC): first {found[0]:.3f} s, then median {statistics.median(found[1:]):.3f} s", flush=True)
    started = time.time()
    load_inline(
        name="scale_inline_benchmark",
        cpp_sources="torch::Tensor scale(torch::Tensor x);",
        cuda_sources="__global__ void k(const float* x, float* y, long n) { long i = blockIdx.x * 256L + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n"
        "torch::Tensor scale(torch::Tensor x) { auto y = torch::empty_like(x); k<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel()); return y; }",
        functions=["scale"],
    )
    print(f"load_inline (nvcc, torch headers): {time.time() - started:.1f} s", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="adversarial,repeat,cache,streams,compile")
    parser.add_argument("--backends", default="triton,cuda")
    parser.add_argument("--match", default="", help="regular expression on backend/file.py")
    arguments = parser.parse_args()
    only, backends = arguments.only.split(","), arguments.backends.split(",")
    if "adversarial" in only:
        await adversarial(backends, arguments.match)
    if "repeat" in only:
        await repeat(backends)
    if "streams" in only:
        await streams()
    if "cache" in only:
        cache()
    if "compile" in only:
        compile_times()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
