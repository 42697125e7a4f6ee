"""Made-up texts are of words that the graph knows, so that what it does with words is compared."""

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.verification import verify
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

LOOKUP = """
    text = Placeholder(dtype=string, shape=[?])
    table = HashTableV2(key_dtype=string, value_dtype=int64)
    words = Const(string ["", "cat", "dog"])
    numbers = Const(int64 [0, 1, 2])
    fill = LookupTableImportV2(table, words, numbers, Tin=string, Tout=int64)
    other = Const(int64 0)
    least = Const(int64 0)
"""
WHOLE = (
    LOOKUP
    + """
    found = LookupTableFindV2(table, text, other, ^fill, Tin=string, Tout=int64)
    y = Maximum(found, least, T=int64)
"""
)
SPLIT = (
    LOOKUP
    + """
    space = Const(string " ")
    parts = StringSplit(text, space)
    lower = StringLower(parts:1)
    found = LookupTableFindV2(table, lower, other, ^fill, Tin=string, Tout=int64)
    y = Cast(found, SrcT=int64, DstT=float)
"""
)
HASHED = """
    text = Placeholder(dtype=string, shape=[?])
    y = StringToHashBucketFast(text, num_buckets=7)
"""
SHOWN = """
    text = Placeholder(dtype=string, shape=[?])
    y = StringLower(text)
"""


def words(text: str, seed: int = 0) -> list[bytes]:
    (given,) = synthetic_feeds(parse(text), ["y"], seed).values()
    assert given.shape == (1,)
    return given[0].split(b" ")  # type: ignore[no-any-return]


def test_one_word_where_the_input_is_looked_up_whole() -> None:
    assert {tuple(words(WHOLE, seed)) for seed in range(20)} == {(b"cat",), (b"dog",)}


def test_several_words_where_it_is_split() -> None:
    several = words(SPLIT)
    assert len(several) > 2
    assert set(several) <= {b"cat", b"dog"}
    assert several == words(SPLIT)
    with Session(parse(SPLIT)) as session:
        (found,) = session.run(["y"], {"text": [b" ".join(several)]})
    np.testing.assert_array_equal(found, [1 + (word == b"dog") for word in several])


def test_words_of_any_kind_are_hashed_and_others_stay_empty() -> None:
    assert len(words(HASHED)[0]) > 1
    assert words(SHOWN) == [b""]


def test_a_model_that_knows_other_words_differs() -> None:
    """With empty texts nothing was split, and nothing compared."""
    assert not verify(parse(SPLIT), parse(SPLIT.replace("[0, 1, 2]", "[0, 2, 1]"))).passed


@pytest.mark.parametrize("is_told", [True, False])
def test_outputs_without_anything_in_them_are_said(is_told: bool) -> None:
    feeds = {"text": np.array([b"" if is_told else b"cat"], object)}
    notes = verify(parse(SPLIT), parse(SPLIT), feeds, ["y"]).notes
    assert any("'y' holds nothing in either model, so nothing of it was compared" in note for note in notes) == is_told
