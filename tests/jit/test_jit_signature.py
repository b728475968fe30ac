"""Signatures read from C++ text."""

from __future__ import annotations

import pytest

from davinci_kernel.jit._signature import parse_signatures


def shape(source: str) -> dict[str, list[tuple[str, str, bool]]]:
    return {
        name: [(parameter.name, parameter.kind, parameter.pointer) for parameter in signature.parameters]
        for name, signature in parse_signatures(source).items()
    }


def test_single_declarations() -> None:
    source = (
        'extern "C" void f(const float* __restrict__ x, float *y, int64_t n) { y[0] = x[n]; }\nvoid hidden(int a) {}'
    )
    assert shape(source) == {"f": [("x", "float", True), ("y", "float", True), ("n", "int64", False)]}


def test_block_with_statics_and_nested_braces() -> None:
    source = """
    extern "C" {
    static float helper(float v) { if (v > 0) { return v; } return 0; }
    int f(const double x[], size_t n) { for (size_t i = 0; i < n; i++) { } return 1; }
    void g(void);
    }
    void outside(int a) {}
    """
    assert shape(source) == {"f": [("x", "double", True), ("n", "uint64", False)], "g": []}
    assert parse_signatures(source)["f"].result == "int32"


def test_comments_strings_and_preprocessor_hide_nothing_and_add_nothing() -> None:
    source = """
    // extern "C" void commented(int a);
    /* extern "C" void also(int a) {} */
    #define BRACE extern "C" void macro(int a) {
    const char* text = "extern \\"C\\" void quoted(int a) {";
    const long big = 1'000'000;
    extern "C" void f(long n) { char c = '{'; (void)c; }
    """
    assert shape(source) == {"f": [("n", "int64", False)]}


@pytest.mark.parametrize(
    ("declared", "kind", "pointer"),
    [
        ("unsigned int n", "uint32", False),
        ("long long n", "int64", False),
        ("std::int64_t n", "int64", False),
        ("const bool flag", "bool", False),
        ("float v = 1.0f", "float", False),
        ("const uint8_t *const mask", "uint8", True),
        ("void* anything", "void", True),
        ("_Float16* h", "float16", True),
        ("real* x", "float", True),
        ("index_t n", "int64", False),
    ],
)
def test_types(declared: str, kind: str, pointer: bool) -> None:
    source = f'using real = float;\ntypedef long index_t;\nextern "C" void f({declared}) {{}}'
    assert [entry[1:] for entry in shape(source)["f"]] == [(kind, pointer)]


def test_unnamed_parameters() -> None:
    assert shape('extern "C" int f(const float*, long long, unsigned);')["f"] == [
        ("#1", "float", True),
        ("#2", "int64", False),
        ("#3", "uint32", False),
    ]


@pytest.mark.parametrize("declared", ["float** x", "std::vector v", "Struct s", "float& x"])
def test_what_cannot_be_passed_has_a_problem(declared: str) -> None:
    assert parse_signatures(f'extern "C" void f({declared}) {{}}')["f"].problem
