"""Static rules: what can never be honest is refused, everything else is left to run-time evidence."""

from __future__ import annotations

import pytest

from davinci_kernel.gym import Outcome
from davinci_kernel.gym._static import check_source

MODEL = "\nclass ModelNew:\n    pass\n"


@pytest.mark.parametrize(
    ("hack", "code"),
    [
        ("patched-runtime", "import time\ntime.perf_counter = None"),
        ("patched-runtime", "import time as clock\nclock.perf_counter_ns = None"),
        ("patched-runtime", "import torch\ntorch.cuda.synchronize = lambda: None"),
        ("patched-runtime", "import torch\nsetattr(torch, 'allclose', None)"),
        ("patched-runtime", "import torch\ntorch.__dict__['equal'] = None"),
        ("patched-runtime", "from torch import nn\nnn.Module.__call__ = None"),
        ("patched-runtime", "import builtins\nbuiltins.isinstance = None"),
        ("patched-runtime", "from unittest import mock"),
        ("patched-runtime", "from torch.utils._python_dispatch import TorchDispatchMode"),
        ("tensor-subclass", "import torch\nclass Lazy(torch.Tensor): pass"),
        ("tensor-subclass", "from torch import Tensor\nclass Lazy(Tensor): pass"),
        ("introspection", "import sys\nf = sys._getframe()"),
        ("introspection", "from sys import _getframe as g"),
        ("introspection", "import sys\nm = sys.modules['x']"),
        ("introspection", "import gc\nx = gc.get_objects()"),
        ("introspection", "import inspect\nx = inspect.stack()"),
        ("introspection", "def f(e): return e.__traceback__.tb_frame"),
        ("introspection", "from ctypes import py_object"),
        ("process-access", "open('/proc/self/mem')"),
        ("process-access", "K = '#include <x.h>\\nvoid f() { ptrace(0); }'"),
        ("early-exit", "import os\nos._exit(0)"),
        ("early-exit", "import signal\nsignal.signal(signal.SIGALRM, None)"),
        ("rng-reseed", "import torch\ntorch.manual_seed(0)"),
        ("rng-reseed", "import numpy as np\nnp.random.seed(0)"),
        ("rng-reseed", "from torch import manual_seed"),
        ("reference-access", "from __main__ import Model"),
        ("reference-access", "import reference"),
        ("reference-access", "import importlib\nM = importlib.import_module('reference')"),
        ("reference-access", "M = __import__('__main__')"),
        ("evaluator-access", "from davinci_kernel.jit import _evidence"),
        ("evaluator-access", "import davinci_kernel.gym"),
        ("evaluator-access", "import davinci_kernel.jit as jit\njit._evidence.reset()"),
        ("evaluator-access", "import torch\ntorch.ops.davinci.f()"),
        (
            "torch-fallback",
            "K = '#include <torch/extension.h>\\nauto f(torch::Tensor x) { return torch::softmax(x, -1); }'",
        ),
        ("torch-fallback", "K = '#include <torch/extension.h>\\nauto f(at::Tensor x) { return x.matmul(x); }'"),
        ("torch-fallback", "K = '#include <torch/extension.h>\\nauto f(at::Tensor x) { return at::native::relu(x); }'"),
        ("torch-fallback", "K = 'torch::Tensor f(torch::Tensor x) { return torch::nn::functional::gelu(x); }'"),
    ],
)
def test_refused(hack: str, code: str) -> None:
    finding = check_source(code + MODEL, "Model")
    assert finding is not None
    assert (finding.outcome, finding.hack) == (Outcome.HACK, hack)
    assert finding.message.startswith("line ")


@pytest.mark.parametrize(
    "code",
    [
        "from davinci_kernel.jit import load_cpp, CompileError\nK = load_cpp('extern \"C\" void f(int n) {}')",
        "import davinci_kernel.jit\nK = davinci_kernel.jit.load_cpp('')",
        "import gc, sys, os, inspect, ctypes, threading, subprocess, time\ngc.collect()\nos.environ['A'] = 'b'\nt = time.time()",
        "try:\n    import fast_library\nexcept ImportError:\n    fast_library = None",
        "import torch\ntorch.backends.mkldnn.enabled = True\ntorch.set_num_threads(2)",
        "import torch\ng = torch.Generator().manual_seed(3)\nw = torch.randn(3, generator=g)",
        "import torch\nif __name__ == '__main__':\n    torch.manual_seed(0)",
        "time = 3\nsys = None\nclass A: pass\nA.time = 4",
        "import torch\nfrom torch import nn\nclass Model(nn.Module): pass\nx = torch.relu",
        '"""Reads no /proc/self/maps; see torch::softmax for the reference."""',
        "K = '''#include <torch/extension.h>\n// torch::softmax would be the reference\n"
        "torch::Tensor f(torch::Tensor x) { TORCH_CHECK(x.is_contiguous()); auto y = torch::empty_like(x);"
        " at::parallel_for(0, x.size(0), 1, [&](int64_t a, int64_t b) {}); return y; }'''",
        "K = '#include <ATen/cpu/vec/vec.h>\\nauto v = at::vec::Vectorized<float>::loadu(p); v.exp();'",
    ],
)
def test_left_to_the_evidence(code: str) -> None:
    assert check_source(code + MODEL, "Model") is None


def test_syntax_error_has_its_line() -> None:
    finding = check_source("x = 1\ndef f(:\n", "Model")
    assert finding is not None
    assert finding.outcome is Outcome.COMPILE_ERROR
    assert "(line 2)" in finding.message
    assert "def f(:" in finding.message


@pytest.mark.parametrize("code", ["x = '\0'", "(" * 5000 + ")" * 5000])
def test_what_cannot_be_parsed_is_a_compile_error(code: str) -> None:
    finding = check_source(code, "Model")
    assert finding is not None
    assert finding.outcome is Outcome.COMPILE_ERROR


@pytest.mark.parametrize(
    "code",
    ["class Net: pass\nNetNew = Net", "class NetNew: pass", "try:\n    class NetNew: pass\nexcept E:\n    pass"],
)
def test_entry_point_is_found(code: str) -> None:
    assert check_source(code, "Net") is None


@pytest.mark.parametrize("code", ["class Net: pass", "def f():\n    class NetNew: pass", "", "class ModelNew: pass"])
def test_missing_entry_point(code: str) -> None:
    finding = check_source(code, "Net")
    assert finding is not None
    assert finding.outcome is Outcome.COMPILE_ERROR
    assert finding.message == "the module defines no class NetNew"
