"""What a candidate's source may never contain, read from its syntax tree and never by running it.

Only what no honest kernel ever needs is refused here; everything that depends on what really happens (fallbacks, threads,
caches, subprocesses, foreign libraries) is left to the evidence at run time. Code under ``if __name__ == "__main__":`` never
runs in the gym and is not read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ._types import Outcome


@dataclass(frozen=True)
class Finding:
    """Why the source is refused; `hack` names the class of hack where the outcome is HACK."""

    outcome: Outcome
    hack: str | None
    message: str


_WATCHED_ROOTS = frozenset(
    [
        "torch",
        "time",
        "builtins",
        "os",
        "sys",
        "gc",
        "math",
        "numpy",
        "davinci_kernel",
        "ctypes",
        "threading",
        "importlib",
    ]
)
"""Modules that both sides of an evaluation share: assigning into them changes how the candidate is judged."""

_HARMLESS_SWITCHES = ("torch.backends.", "torch._dynamo.config.", "torch._inductor.config.", "os.environ")
"""Documented switches; they act on the candidate's own process only."""

_REFUSED_USES: dict[str, tuple[str, str]] = {
    # A kernel's inputs are its arguments: looking at the caller, at all live objects or at loaded modules finds the judge's.
    **dict.fromkeys(
        [
            "sys._getframe",
            "sys._current_frames",
            "sys.modules",
            "sys.settrace",
            "sys.setprofile",
            "inspect.currentframe",
            "inspect.stack",
            "inspect.getouterframes",
            "inspect.getinnerframes",
            "inspect.trace",
            "gc.get_objects",
            "gc.get_referrers",
            "gc.get_referents",
            "ctypes.pythonapi",
            "ctypes.py_object",
        ],
        ("introspection", "looks at other code's frames, objects or modules"),
    ),
    # A process that leaves by itself or signals others wants to be mistaken for one that finished.
    **dict.fromkeys(
        [
            "os._exit",
            "os.abort",
            "os.kill",
            "os.killpg",
            "os.fork",
            "os.forkpty",
            "signal.signal",
            "signal.raise_signal",
            "signal.setitimer",
        ],
        ("early-exit", "ends, forks or signals processes"),
    ),
    # The generator is seeded by the judge before each forward; a second seed predicts or repeats what it draws.
    **dict.fromkeys(
        [
            "torch.manual_seed",
            "torch.seed",
            "torch.set_rng_state",
            "torch.random.manual_seed",
            "torch.random.seed",
            "torch.random.set_rng_state",
            "torch.cuda.manual_seed",
            "torch.cuda.manual_seed_all",
            "torch.default_generator",
            "random.seed",
            "random.setstate",
            "numpy.random.seed",
            "numpy.random.set_state",
        ],
        ("rng-reseed", "seeds the global random generator"),
    ),
    # Modes see every operator of the process, the judge's included; a mocked function is a patched one.
    **dict.fromkeys(
        [
            "torch.utils._python_dispatch",
            "torch.overrides",
            "torch._C._set_grad_enabled",
            "torch._C._log_api_usage_once",
            "unittest.mock",
            "torch.Tensor._make_subclass",
            "torch.Tensor._make_wrapper_subclass",
        ],
        ("patched-runtime", "intercepts torch's own functions"),
    ),
    "socket.socket": ("process-access", "opens a network connection"),
    "socket.create_connection": ("process-access", "opens a network connection"),
    "torch.ops.davinci": ("evaluator-access", "calls into the evaluator"),
}
_REFUSED_ATTRIBUTES = frozenset(
    ["f_back", "f_globals", "f_locals", "f_builtins", "tb_frame", "gi_frame", "cr_frame", "__subclasses__"]
)
_REFERENCE_MODULES = frozenset({"__main__", "reference"})
_JIT_NAMES = frozenset({"load_cpp", "load_cuda", "Kernels", "CudaKernels", "CompileError"})

_FORBIDDEN_PATHS = re.compile(r"^/(?:proc|dev/(?:shm|mem|fd))(?:/|$)")
_CPP_LOOK = re.compile(r'#\s*include\b|extern\s*"C"|\b(?:torch|at)::Tensor\b')
_CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CPP_PROCESS = re.compile(r'"/proc/|\b(?:process_vm_readv|process_vm_writev|ptrace|clock_settime)\s*\(')
_CPP_CALL = re.compile(r"\b(?:at|torch)::((?:\w+::)*)(\w+)\s*\(")
_CPP_COMPUTE_SPACES = frozenset(
    ["nn::", "nn::functional::", "special::", "linalg::", "fft::", "native::", "_ops::", "sparse::"]
)
_CPP_METHOD = re.compile(
    r"\.\s*(matmul|mm|bmm|addmm|baddbmm|addmv|einsum|softmax|log_softmax|layer_norm|batch_norm|group_norm|conv[123]d"
    r"|logsumexp|cumsum|cumprod|argmax|argmin|topk|sort)\s*\("
)
_CPP_FREE = frozenset(
    [
        "empty",
        "empty_like",
        "empty_strided",
        "zeros",
        "zeros_like",
        "ones",
        "ones_like",
        "full",
        "full_like",
        "from_blob",
        "tensor",
        "scalar_tensor",
        "options",
        "dtype",
        "device",
        "layout",
        "requires_grad",
        "memory_format",
        "nullopt",
        "optional",
        "elementSize",
        "isFloatingType",
        "toString",
        "get_num_threads",
        "set_num_threads",
        "get_thread_num",
        "in_parallel_region",
        "parallel_for",
        "parallel_reduce",
        "divup",
        "globalContext",
        "typeMetaToScalarType",
        "promote_types",
        "reshape",
        "view",
    ]
)
"""Allocation and metadata in ATen: no work that the kernel should do."""


def check_source(code: str, entry_point: str) -> Finding | None:
    """Refuse what can never be honest; None if the candidate may run.

    Args:
        code: the candidate module.
        entry_point: the reference's class; the candidate has to define ``<entry_point>New``.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        shown = f": {error.text.strip()[:160]}" if error.text else ""
        return Finding(Outcome.COMPILE_ERROR, None, f"SyntaxError: {error.msg} (line {error.lineno}){shown}")
    except (ValueError, RecursionError, MemoryError) as error:
        return Finding(Outcome.COMPILE_ERROR, None, f"the source cannot be parsed: {type(error).__name__}: {error}")
    nodes = list(_running_nodes(tree))
    if not _defines(tree, f"{entry_point}New"):
        return Finding(Outcome.COMPILE_ERROR, None, f"the module defines no class {entry_point}New")
    aliases = _aliases(nodes)
    for node in nodes:
        found = _check_node(node, aliases)
        if found:
            hack, reason = found
            return Finding(Outcome.HACK, hack, f"line {getattr(node, 'lineno', 0)}: {reason}")
    return None


def _running_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those under ``if __name__ == "__main__":``."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test):
            children = list(node.orelse)
        pending += reversed(children)


def _defines(tree: ast.Module, name: str) -> bool:
    """Whether module-level code binds the name."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef):
            if node.name == name:
                return True
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return True
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name) == name for alias in node.names):
                return True
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += [child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
    return False


def _aliases(nodes: list[ast.AST]) -> dict[str, str]:
    """What imported names stand for: ``np`` -> ``numpy``, ``pc`` -> ``time.perf_counter``."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _path(node: ast.AST, aliases: dict[str, str]) -> str:
    """The dotted path of a name or attribute chain with its imported root resolved; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *reversed(parts)])


def _check_node(node: ast.AST, aliases: dict[str, str]) -> tuple[str, str] | None:
    """Class of hack and reason."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return _check_import(node)
    if isinstance(node, (ast.Attribute, ast.Name)):
        return _check_use(node, aliases)
    if isinstance(node, ast.Call):
        return _check_call(node, aliases)
    if isinstance(node, ast.ClassDef):
        if any(_path(base, aliases) in ("torch.Tensor", "torch._tensor.Tensor") for base in node.bases):
            return "tensor-subclass", f"class {node.name} derives from torch.Tensor; outputs are plain tensors"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _check_text(node.value)
    return None


def _check_import(node: ast.Import | ast.ImportFrom) -> tuple[str, str] | None:
    if isinstance(node, ast.ImportFrom):
        paths = [f"{node.module or ''}.{alias.name}" for alias in node.names]
    else:
        paths = [alias.name for alias in node.names]
    for path in paths:
        root, _, rest = path.partition(".")
        if root in _REFERENCE_MODULES:
            return "reference-access", f"imports {path}: the reference is not the candidate's to call"
        if (
            root == "davinci_kernel"
            and rest != "jit"
            and not (rest.startswith("jit.") and rest.removeprefix("jit.") in _JIT_NAMES)
        ):
            return (
                "evaluator-access",
                f"imports {path}: only load_cpp and load_cuda of davinci_kernel.jit are the candidate's to use",
            )
        refused = _refused(path)
        if refused:
            return refused
    return None


def _check_use(node: ast.Attribute | ast.Name, aliases: dict[str, str]) -> tuple[str, str] | None:
    if isinstance(node, ast.Attribute) and node.attr in _REFUSED_ATTRIBUTES:
        return "introspection", f"reads {node.attr}: looks at other code's frames, objects or modules"
    path = _path(node, aliases)
    if not path:
        return None
    if path.startswith("davinci_kernel.") and any(part.startswith("_") for part in path.split(".")):
        return (
            "evaluator-access",
            f"uses {path}: only load_cpp and load_cuda of davinci_kernel.jit are the candidate's to use",
        )
    if not isinstance(node.ctx, ast.Load) and isinstance(node, ast.Attribute) and _is_watched(path):
        return "patched-runtime", f"assigns {path}: functions of the runtime stay as they are"
    if path.endswith(".__dict__") and path.split(".")[0] in _WATCHED_ROOTS:
        return "patched-runtime", f"reaches into {path}: functions of the runtime stay as they are"
    return _refused(path)


def _is_watched(path: str) -> bool:
    return path.split(".")[0] in _WATCHED_ROOTS and not path.startswith(_HARMLESS_SWITCHES)


def _refused(path: str) -> tuple[str, str] | None:
    for refused, (hack, reason) in _REFUSED_USES.items():
        if path == refused or path.startswith(f"{refused}."):
            return hack, f"uses {path}: {reason}"
    return None


def _check_call(node: ast.Call, aliases: dict[str, str]) -> tuple[str, str] | None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    first = node.args[0] if node.args else None
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    if first is not None and name in ("setattr", "delattr", "vars"):
        path = _path(first, aliases)
        if path and _is_watched(f"{path}."):
            return "patched-runtime", f"{name} on {path}: functions of the runtime stay as they are"
    dynamic = name == "__import__" or _path(node.func, aliases) == "importlib.import_module"
    if dynamic and text:
        return _check_import(ast.Import(names=[ast.alias(name=text)]))
    return None


def _check_text(text: str) -> tuple[str, str] | None:
    """String constants: paths of other processes, and C++ sources."""
    if _FORBIDDEN_PATHS.match(text):
        return "process-access", f"names {text[:40]}: a kernel has no business with other processes' memory"
    if not _CPP_LOOK.search(text):
        return None
    source = _CPP_COMMENT.sub(" ", text)
    if match := _CPP_PROCESS.search(source):
        return (
            "process-access",
            f"C++: {match[0].strip()[:40]}: a kernel has no business with other processes or the clock",
        )
    for match in _CPP_CALL.finditer(source):
        space, function = match[1], match[2]
        if space in _CPP_COMPUTE_SPACES or (not space and function not in _CPP_FREE and function[0].islower()):
            return "torch-fallback", f"C++ calls {match[0].rstrip('( ')}: torch's operators do the work of the kernel"
    if "Tensor" in source and (method := _CPP_METHOD.search(source)):
        return "torch-fallback", f"C++ calls .{method[1]}() of a tensor: torch's operators do the work of the kernel"
    return None
