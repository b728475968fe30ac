"""Signatures of a C++ source's ``extern "C"`` functions, read from its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKENS = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
_LINKAGE = re.compile(r'\bextern\s*"C"\s*(\{?)')
_FUNCTION = re.compile(
    r"^(?P<result>[\w\s*:]*?[\s*])(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^()]*)\)\s*(?:noexcept\s*)?$"
)
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]", re.DOTALL)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*([\w\s:*]+);|\btypedef\s+([\w\s:*]+?)\s*\b(\w+)\s*;")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict|register|inline|static)\b|\bstd::")

_CANONICAL = {
    "float": "float",
    "double": "double",
    "bool": "bool",
    "_Bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "int8_t": "int8",
    "unsigned char": "uint8",
    "uint8_t": "uint8",
    "short": "int16",
    "short int": "int16",
    "int16_t": "int16",
    "unsigned short": "uint16",
    "unsigned short int": "uint16",
    "uint16_t": "uint16",
    "int": "int32",
    "signed": "int32",
    "signed int": "int32",
    "int32_t": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "uint32_t": "uint32",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "long long int": "int64",
    "int64_t": "int64",
    "ssize_t": "int64",
    "ptrdiff_t": "int64",
    "intptr_t": "int64",
    "unsigned long": "uint64",
    "unsigned long int": "uint64",
    "unsigned long long": "uint64",
    "unsigned long long int": "uint64",
    "uint64_t": "uint64",
    "size_t": "uint64",
    "uintptr_t": "uint64",
    "_Float16": "float16",
    "__fp16": "float16",
    "__bf16": "bfloat16",
    "void": "void",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter; `kind` is the scalar type's canonical name (``float``, ``int64`` ...), `pointer` whether it is one.

    `text` is the declaration as written, for messages.
    """

    name: str
    kind: str
    pointer: bool
    text: str


@dataclass(frozen=True)
class Signature:
    """One function; `problem` says why it cannot be called, where it cannot."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    problem: str = ""


def parse_signatures(source: str) -> dict[str, Signature]:
    """Signatures by name of all ``extern "C"`` functions that are declared or defined at the top level of ``source``."""
    text = _without_noise(source)
    aliases = {(m[1] or m[4]): (m[2] or m[3]).strip() for m in _ALIAS.finditer(text)}
    found: dict[str, Signature] = {}
    for head in _extern_heads(text):
        match = _FUNCTION.match(_ATTRIBUTE.sub(" ", head).strip())
        if match and not re.search(r"\bstatic\b", match["result"]):
            found[match["name"]] = _signature(match, aliases)
    return found


def _without_noise(source: str) -> str:
    """The source without comments, literals (but for "C") and preprocessor lines."""

    def replace(match: re.Match[str]) -> str:
        return match[0] if match[0] == '"C"' else '""' if match[0].startswith('"') else " "

    return _TOKENS.sub(replace, _DIGIT_SEPARATOR.sub("", source))


def _extern_heads(text: str) -> Iterator[str]:
    """The text before the body or semicolon of each item with C linkage."""
    position = 0
    while match := _LINKAGE.search(text, position):
        start = match.end()
        if match[1]:
            position = _closing(text, start)
            yield from _heads(text[start : position - 1])
        else:
            ends = [end for end in (text.find("{", start), text.find(";", start)) if end >= 0]
            position = min(ends, default=len(text))
            yield text[start:position]


def _heads(block: str) -> Iterator[str]:
    """The heads of the items at the top level of an ``extern "C"`` block."""
    start = position = 0
    while position < len(block):
        if block[position] == ";":
            yield block[start:position]
            start = position + 1
        elif block[position] == "{":
            yield block[start:position]
            position = _closing(block, position + 1) - 1
            start = position + 1
        position += 1


def _closing(text: str, start: int) -> int:
    """The position after the brace that closes the one before ``start``."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _signature(match: re.Match[str], aliases: dict[str, str]) -> Signature:
    name, problem = match["name"], ""
    result, result_pointer = _type(match["result"], aliases)
    if result_pointer or result not in _KNOWN:
        problem = f"returns {match['result'].strip()!r}; only void and numbers can be returned"
    parameters = []
    declared = match["parameters"].strip()
    for index, text in enumerate(declared.split(",") if declared not in ("", "void") else []):
        parameter = _parameter(text, index, aliases)
        if parameter.kind not in _KNOWN or (parameter.kind == "void" and not parameter.pointer):
            problem = problem or f"parameter {' '.join(text.split())!r} is neither a number nor a pointer to numbers"
        parameters.append(parameter)
    return Signature(name, result, tuple(parameters), problem)


_KNOWN = frozenset(_CANONICAL.values())


def _parameter(text: str, index: int, aliases: dict[str, str]) -> Parameter:
    written = " ".join(text.split())
    declarator = re.sub(r"\[[^\]]*\]", "*", text.split("=")[0])
    words = re.findall(r"[A-Za-z_][\w:]*", _QUALIFIERS.sub(" ", declarator))
    named = len(words) > 1 and " ".join(words) not in _CANONICAL and words[-1] not in _CANONICAL
    name = words[-1] if named else f"#{index + 1}"
    marks = "".join(mark for mark in declarator if mark in "*&")
    kind, pointer = _type(" ".join(words[:-1] if named else words) + marks, aliases)
    return Parameter(name, kind, pointer, written)


def _type(text: str, aliases: dict[str, str]) -> tuple[str, bool]:
    """Canonical scalar name, or the text itself where unknown, and whether it is a pointer."""
    stars, words = text.count("*"), _QUALIFIERS.sub(" ", text).replace("*", " ").split()
    plain = " ".join(words)
    for _ in range(len(aliases)):
        if plain not in aliases:
            break
        target = aliases[plain]
        stars += target.count("*")
        plain = " ".join(_QUALIFIERS.sub(" ", target).replace("*", " ").split())
    if stars > 1 or "&" in text:
        return text.strip(), False
    return _CANONICAL.get(plain, plain), bool(stars)
