"""Candidates that attack the machine rather than the verdict: whatever they do, the next candidate finds everything as before."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from headers import fits, header

from davinci_kernel.gym import Candidate, EvalSettings, GymPool, Verdict, sandbox_layers
from davinci_kernel.tasks import Task

HERE = Path(__file__).parent
FILES = sorted((HERE / "violent").glob("*.py"))
SETTINGS = EvalSettings(measure=False, num_correct_trials=2, run_timeout=3.0, memory_limit_gb=1.0)
LAYERS = sandbox_layers()
NEEDS = {
    "disk_filler": "limited space for files (file system of its own)",
    "disk_filler_unlinked": "limited space for files (file system of its own)",
    "many_files": "limited space for files (file system of its own)",
    "files_left_behind": "files outside of its scratch directory (Landlock)",
    "fork_bomb_sessions": "a user of its own for each candidate",
}
"""What the host must allow for a file's outcome to be certain."""


class Room:
    """One pool, and what its candidates leave behind."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pool = GymPool(SETTINGS, cache_verdicts=False)

    def judge(self, path: Path) -> Verdict:
        name = header(path, "task")
        task = Task(f"adversarial/{name}", (HERE / "tasks" / name).read_text())
        return self.loop.run_until_complete(self.pool.evaluate(task, Candidate(code=path.read_text())))

    @property
    def server(self) -> int:
        assert self.pool.cpu.server is not None
        return self.pool.cpu.server.process.pid

    def left_behind(self) -> list[str]:
        """Processes of the fork server that are neither judges nor references, and directories of candidates."""
        assert self.pool.cpu.server is not None
        scratch = self.pool.cpu.server.scratch
        processes = [pid for pid in descendants(self.server) if "/candidate" in link(f"/proc/{pid}/cwd")]
        folders = [str(path) for path in Path(scratch).glob("*/candidate*")]
        return processes + folders


def descendants(pid: int) -> list[str]:
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        for child in (thread / "children").read_text().split():
            found += [child, *descendants(int(child))]
    return found


def link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


@pytest.fixture(scope="module")
def room() -> Iterator[Room]:
    room = Room()
    yield room
    room.loop.run_until_complete(room.pool.close())
    room.loop.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_survived(path: Path, room: Room) -> None:
    layer = NEEDS.get(path.stem)
    if layer and not LAYERS[layer]:
        pytest.skip(f"this host has no {layer}")
    honest = HERE / "cpp" / "honest_plain.py"
    assert room.judge(honest).correct
    server = room.server
    verdict = room.judge(path)
    required = header(path, "required").split("|")
    assert any(fits(verdict, one) for one in required), f"required {required}, got {verdict.outcome}: {verdict.message}"
    assert room.left_behind() == []
    assert not any(Path(folder, "davinci-left-behind").exists() for folder in ("/tmp", "/dev/shm", "/var/tmp"))
    after = room.judge(honest)
    assert after.correct, after.message
    assert room.server == server
