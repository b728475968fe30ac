"""BM25 recall: tokens, hand-computed scores, fallback."""

import math

import pytest

from davinci_kernel.skills import LibraryView, Skill, SkillLibrary
from davinci_kernel.skills._retrieval import tokenize


def test_separators_and_case():
    assert tokenize(["Fused_soft-max/ONLINE"]) == [["fused", "soft", "max", "online"]]


def bm25(frequency, length, mean_length, documents_with, documents, k1=1.5, b=0.75):
    """Lucene's BM25 for one word, written out."""
    idf = math.log(1 + (documents - documents_with + 0.5) / (documents_with + 0.5))
    return idf * frequency / (frequency + k1 * (1 - b + b * length / mean_length))


def test_scores_are_bm25_over_all_four_fields():
    skills = [
        Skill(name="softmax_rows", description="online maximum", tags=("cache",), content="warp shuffle"),  # 7 words
        Skill(name="tiling", content="shared memory tile tile"),  # 5 words
        Skill(name="softmax", content="exp softmax"),  # 3 words
    ]
    view = LibraryView(skills)
    mean = (7 + 5 + 3) / 3
    assert view.scores("softmax") == pytest.approx([bm25(1, 7, mean, 2, 3), 0, bm25(2, 3, mean, 2, 3)], rel=1e-5)
    for word, owner in {"rows": 0, "maximum": 0, "cache": 0, "shuffle": 0, "tiling": 1, "memory": 1, "exp": 2}.items():
        assert [s.name for s in view.recall(word)] == [skills[owner].name]
    assert view.scores("tile exp") == pytest.approx([0, bm25(2, 5, mean, 1, 3), bm25(1, 3, mean, 1, 3)], rel=1e-5)


def test_recall_orders_by_score_and_cuts_at_k():
    view = LibraryView([Skill(name=f"s{n}", content="fuse " * n + "pad " * (9 - n)) for n in (1, 3, 2)])
    assert [s.name for s in view.recall("fuse")] == ["s3", "s2", "s1"]
    assert [s.name for s in view.recall("fuse", k=2)] == ["s3", "s2"]


def test_equal_scores_keep_library_order():
    view = LibraryView([Skill(name=name, content="fuse loops") for name in ("bb", "aa", "cc")])
    assert [s.name for s in view.recall("fuse", k=2)] == ["bb", "aa"]


def test_nothing_recalled_gives_a_seeded_sample():
    view = LibraryView([Skill(name=f"skill{n}") for n in range(40)])
    sample = view.recall("unheard", fallback=30, seed=1)
    assert len({s.name for s in sample}) == 30
    assert sample == view.recall("unheard", fallback=30, seed=1)
    assert sample != view.recall("unheard", fallback=30, seed=2)
    assert view.recall("unheard", fallback=0) == []
    assert len(view.recall("", fallback=100)) == 40


def test_one_hit_suppresses_the_fallback():
    view = LibraryView([Skill(name="alpha"), Skill(name="beta")])
    assert [s.name for s in view.recall("beta unheard")] == ["beta"]


def test_empty_libraries_recall_nothing():
    assert LibraryView().recall("anything") == []
    assert [s.name for s in LibraryView([Skill(name="x")]).recall("x")] == ["x"]  # no indexable word: the fallback


def test_a_view_does_not_see_later_skills():
    library = SkillLibrary(None, [Skill(name="first")])
    view = library.view()
    library.stage(Skill(name="second"))
    library.flush(1)
    assert ([s.name for s in view.skills], len(library)) == (["first"], 2)
    assert [s.name for s in library.recall("second")] == ["second"]
