"""A KernelGYM server as its own process, and candidates to send to it."""

import os
import re
import signal
import subprocess
import sys

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0
def get_inputs():
    return [torch.randn(64, 128)]
def get_init_inputs():
    return []
"""
KERNEL = '''
import torch
from davinci_kernel.jit import load_cpp
K = load_cpp(r"""
extern "C" void relu2(const float* x, float* out, long n) {
    for (long i = 0; i < n; i++) out[i] = x[i] > 0 ? x[i] * 2.0f : 0.0f;
}
""")
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        K.relu2(x, out, x.numel())
        return out
'''
WRONG = KERNEL.replace("2.0f", "3.0f")
BROKEN = KERNEL.replace('extern "C" void', 'extern "C" vid')
HANGING = KERNEL.replace("    for (long", "    for (;;);\n    for (long")
FAST = {"measure": False, "num_correct_trials": 2, "distribution_trials": False, "run_timeout": 2.0}
"""Settings under which a verdict takes a fraction of a second, and a hanging candidate 2 s."""


def request(task_id, code=KERNEL, **fields):
    """A submission with `FAST` settings."""
    settings = FAST | fields.pop("settings", {})
    return {"task_id": task_id, "reference_code": REFERENCE, "kernel_code": code, "settings": settings} | fields


class Server:
    """`davinci gym serve` on a free port, or on the one that an earlier server had."""

    def __init__(self, database, *options, port=0, token=""):
        command = [sys.executable, "-c", "from davinci_kernel.cli import main; main()", "gym", "serve"]
        self.process = subprocess.Popen(
            [*command, "--database", str(database), "--port", str(port), *options],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"KERNELGYM_TOKEN": token},
        )
        line = self.process.stderr.readline()
        found = re.search(r"http://\S+:(\d+)", line)
        assert found, line + self.process.stderr.read()
        self.url, self.port = found[0], int(found[1])

    def end(self, number=signal.SIGKILL):
        """Send a signal; the exit code, and what was said since the start."""
        self.process.send_signal(number)
        said = self.process.stderr.read()
        return self.process.wait(), said
