"""Compile C++ text to a shared library, cached by content."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_BASE_FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-Wl,--no-undefined", "-w")
_DIALECTS = ("-std=c++14", "-std=c++17")
"""Tried in order: C++17's <cmath> takes three times as long to parse, and few kernels need that dialect."""
_ALLOWED_FLAGS = re.compile(
    r"""-O[0-3] | -Ofast | -ffast-math | -funroll-loops | -fno-unroll-loops | -ftree-vectorize | -fopenmp-simd
    | -fno-(?:math-errno|trapping-math|signed-zeros|exceptions|rtti|strict-aliasing|tree-vectorize)
    | -fassociative-math | -freciprocal-math | -ffinite-math-only | -ffp-contract=(?:fast|on|off)
    | -mprefer-vector-width=(?:128|256|512) | -m(?:avx|avx2|fma|f16c|avx512[a-z0-9]+) | -mtune=native
    | -std=(?:c|gnu)\+\+(?:17|20) | -fstrict-aliasing | -fopenmp | -march=native | -fPIC | -shared | -w
    | -W(?:all|extra|no-[a-z-]+) | -D[A-Za-z_]\w*(?:=[\w.+-]+)?""",
    re.VERBOSE,
)
# The driver links a start-up file into fast-math libraries that turns denormals off in the whole process. Handed to the
# compiler proper only, the flag does everything but that.
_COMPILER_ONLY = {"-ffast-math": ("-Wp,-ffast-math",), "-Ofast": ("-O3", "-Wp,-ffast-math")}
_DIAGNOSTIC = re.compile(
    r"^(?:<stdin>|[^\s:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$", re.MULTILINE
)
_LINKER = re.compile(r"undefined reference to .*|multiple definition of .*|cannot find .*")


class CompileError(Exception):
    """The compiler refused the source: its first error with the line, without paths."""


def build(source: str, extra_cflags: Sequence[str]) -> Path:
    """The shared library of ``source``, compiled unless the cache has it.

    Raises:
        CompileError: with the compiler's first error.
        ValueError: a flag that is not allowed.
        RuntimeError: there is no C++ compiler.
    """
    flags = _flags(extra_cflags)
    compiler, version = _compiler()
    identity = "\0".join((version, _processor(), *flags, source))
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    directory = _cache_directory()
    library = directory / f"{key}.so"
    if not library.exists():
        with _locked(directory / f"{key}.lock"):
            if not library.exists():
                _compile(compiler, flags, source, library)
    return library


def _flags(extra_cflags: Sequence[str]) -> list[str]:
    if isinstance(extra_cflags, str):
        raise TypeError("load_cpp: extra_cflags is a list of flags, such as ['-ffast-math']")
    flags = list(_BASE_FLAGS)
    for flag in extra_cflags:
        if not _ALLOWED_FLAGS.fullmatch(flag):
            raise ValueError(
                f"load_cpp: flag {flag!r} is not allowed; use optimisation flags such as -ffast-math, -funroll-loops"
            )
        flags += [part for part in _COMPILER_ONLY.get(flag, (flag,)) if part not in flags]
    return flags


def _compile(compiler: str, flags: Sequence[str], source: str, library: Path) -> None:
    handle, temporary = tempfile.mkstemp(dir=library.parent, prefix=library.stem, suffix=".tmp")
    os.close(handle)
    chosen = any(flag.startswith("-std=") for flag in flags)
    try:
        for dialect in [[]] if chosen else [[flag] for flag in _DIALECTS]:
            command = [compiler, "-x", "c++", *dialect, *flags, "-fdiagnostics-color=never", "-", "-o", temporary]
            done = subprocess.run(
                command, input=source, capture_output=True, text=True, errors="replace", env=_environment()
            )
            if not done.returncode:
                break
        if done.returncode:
            raise CompileError(first_error(done.stderr, source))
        os.replace(temporary, library)
    finally:
        Path(temporary).unlink(missing_ok=True)


def first_error(stderr: str, source: str) -> str:
    """The first error of a compiler's or linker's report, with the source line it names."""
    match = _DIAGNOSTIC.search(stderr)
    if match:
        count = len(_DIAGNOSTIC.findall(stderr))
        number = int(match["line"])
        lines = source.splitlines()
        own = match[0].startswith("<stdin>") and number <= len(lines)
        where = f"line {number}, column {match['column']}" if own else "in an included file"
        shown = f"\n  {lines[number - 1].strip()[:200]}" if own else ""
        more = f"\n({count - 1} more errors)" if count > 1 else ""
        return f"{where}: {match['text']}{shown}{more}"
    linker = _LINKER.search(stderr)
    if linker:
        return linker[0]
    lines = [line for line in stderr.splitlines() if line.strip()]
    return re.sub(r"(?:/[\w.+-]+)+/", "", lines[0])[:500] if lines else "the compiler failed without a message"


@functools.cache
def _compiler() -> tuple[str, str]:
    """Path and version of the C++ compiler: $CXX, else g++."""
    path = shutil.which(os.environ.get("CXX") or "g++")
    if path is None:
        raise RuntimeError("load_cpp: no C++ compiler; install g++ or set CXX")
    version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout.splitlines()
    return path, version[0] if version else path


@functools.cache
def _processor() -> str:
    """What -march=native means here; a cache directory may be shared by several hosts."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line for line in file if line.startswith(("flags", "Features"))), platform.machine())
    except OSError:
        return platform.machine()


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = Path(os.environ.get("DAVINCI_JIT_CACHE") or os.path.join(base, "davinci-kernel", "jit"))
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:  # a waiter on the removed file finds the library, or at worst builds an equal one
            path.unlink(missing_ok=True)
