"""The rooms import only downwards (docs/architecture.md)."""

import ast
from pathlib import Path

import davinci_kernel

ROOT = Path(davinci_kernel.__file__).parent
ROOMS = [
    "cli", "report", "grading", "sft", "rl", "rollout", "agents", "skills", "llm", "gym", "jit", "tasks", "config", "errors",
]  # fmt: skip


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a module names, in absolute or relative imports, lazily or not."""
    package = ("davinci_kernel", *path.relative_to(ROOT).with_suffix("").parts)
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level]) if node.level else []
            base += (node.module or "").split(".") if node.module else []
            names = [[*base, alias.name] for alias in node.names]
        rooms.update(n[1] for n in names if n[0] == "davinci_kernel" and len(n) > 1 and n[1] in ROOMS)
    return rooms


def upward_imports(path: Path) -> set[str]:
    here = ROOMS.index(room_of(path))
    return {room for room in imported_rooms(path) if ROOMS.index(room) < here}


def test_imports_point_downwards():
    offences = {
        str(path.relative_to(ROOT)): sorted(upward_imports(path))
        for path in ROOT.rglob("*.py")
        if room_of(path) in ROOMS and upward_imports(path)
    }
    assert offences == {}


def test_every_module_is_in_a_room():
    known = {*ROOMS, "__init__"}
    assert {room_of(p) for p in ROOT.rglob("*.py")} <= known


def test_the_check_sees_an_upward_import(tmp_path, monkeypatch):
    module = tmp_path / "tasks" / "bad.py"
    module.parent.mkdir()
    module.write_text("def f():\n    from davinci_kernel.gym import Verdict\n    from ..rl import losses\n")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert upward_imports(module) == {"gym", "rl"}
