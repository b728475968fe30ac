"""The policy agent: writes the kernel, turn by turn.

Every prompt keeps constant text and variable text on lines of their own: short for any model, and a single token per
constant line for the quickstart's line-wise tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci_kernel.gym import Backend
from davinci_kernel.llm import Message
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

from ._thinking import with_thinking

_BACKENDS: dict[Backend, tuple[str, ...]] = {
    "cpp": (
        "Write C++ kernels for the CPU; OpenMP is available.",
        "Compile them by: from davinci_kernel.jit import load_cpp;",
        """K = load_cpp(r'''extern "C" void f(const float* x, float* y, long n) { ... }''');""",
        "call them by: K.f(x, y, x.numel()).",
    ),
    "triton": (
        "Write Triton kernels for the GPU.",
        "Import them by: import triton, triton.language as tl;",
        "call them by: kernel[grid](x, y, x.numel(), BLOCK=1024).",
    ),
    "cuda": (
        "Write CUDA kernels for the GPU.",
        "Compile them by: from torch.utils.cpp_extension import load_inline",
        "Call them through the functions of the module that load_inline returns.",
    ),
}
SKILLS_HEADER = "# Optional reference skills: use what fits this task, ignore the rest."
SKILLS_FOOTER = "# End of the optional references."
_IMPROVE = "Improve it: correct first, then faster. Answer with the whole module."


def policy_messages(task: Task, skills: Sequence[Skill], backend: Backend) -> list[Message]:
    """System and user message of turn 0; the skills' full bodies are appended to the system message."""
    entry = task.entry_point
    system = [
        f"Write {entry}New: a faster {entry} with the same constructor, arguments and results.",
        "Do all computation in your own kernels, never in torch or another library.",
        *_BACKENDS[backend],
        "Answer with one whole Python module in a ```python block.",
    ]
    system = [" ".join(system)]
    if skills:
        system += ["", SKILLS_HEADER, *(_reference(skill) for skill in skills), SKILLS_FOOTER]
    user = ["Make this module faster.", "```python", task.code.strip("\n"), "```"]
    return [{"role": "system", "content": "\n".join(system)}, {"role": "user", "content": "\n".join(user)}]


def feedback_message(verdict_text: str, turn: int) -> Message:
    """The user message after turn `turn` (counted from 0): the evaluator's feedback and the request to improve."""
    lines = [f"Result of attempt {turn + 1}:", verdict_text.strip("\n"), _IMPROVE]
    return {"role": "user", "content": "\n".join(lines)}


def policy_answer(code: str, think: str = "") -> Message:
    """An assistant message whose candidate module is `code`: what `extract_code` reads back."""
    body = code.strip("\n")
    return {"role": "assistant", "content": with_thinking(think, f"```python\n{body}\n```")}


def _reference(skill: Skill) -> str:
    return "\n".join(filter(None, (f"# {skill.name}", skill.description, skill.content.strip("\n"))))
