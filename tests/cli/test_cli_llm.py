"""`davinci llm serve` as a process: it says where it listens, answers, and ends at Ctrl-C."""

import asyncio
import signal
import socket
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from davinci_kernel.cli.llm import register
from davinci_kernel.errors import UserError
from davinci_kernel.llm import OpenAILLM, SamplingParams, save_model, small_model, train_tokenizer


def test_serve_from_start_to_end(tmp_path):
    tokenizer = train_tokenizer(["user\nassistant\n"], 400)
    save_model(small_model(tokenizer, layers=1, width=16, heads=2, mlp=16, max_positions=256), tokenizer, tmp_path)
    command = [sys.executable, "-c", "from davinci_kernel.cli import main; main()", "llm", "serve", str(tmp_path)]
    with subprocess.Popen([*command, "--name", "tiny", "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        line = next(line for line in server.stderr if line.startswith("serving tiny at "))
        llm = OpenAILLM("tiny", line.split()[-1])
        completion = asyncio.run(llm.chat([{"role": "user", "content": "Hi"}], SamplingParams(max_tokens=5)))
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    assert completion.usage["completion_tokens"] > 0
    assert server.returncode == 130


def test_a_port_in_use_is_one_line():
    app = typer.Typer()
    register(app)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["llm", "serve", "model", "--port", port])
    assert isinstance(result.exception, UserError)
    with pytest.raises(UserError, match=rf"--port {port}: .*; choose another"):
        raise result.exception
