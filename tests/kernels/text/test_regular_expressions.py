"""Regular expressions: TensorFlow's answers, from the library of RE2, from Python's matcher and from our own."""

import gzip
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pocketgraph.budgets import Deadline, limits
from pocketgraph.errors import DeadlineError, RunError
from pocketgraph.kernels.text import regular_expressions as ops
from pocketgraph.kernels.text.regex.matcher import Matcher
from pocketgraph.kernels.text.regex.nfa import Nfa
from pocketgraph.kernels.text.regex.plain import PlainMatcher, is_plain
from pocketgraph.kernels.text.regex.syntax import PatternError, parse

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures"
GOLDEN = json.loads(gzip.decompress((FOLDER / "regular_expressions.json.gz").read_bytes()))
TEXTS = [bytes.fromhex(text) for text in GOLDEN["texts"]]
REWRITES = [bytes.fromhex(text) for text in GOLDEN["rewrites"]]


def automaton(pattern: bytes) -> ops.CompiledPattern:
    return Matcher(Nfa(*parse(pattern)))


def library(pattern: bytes) -> ops.CompiledPattern:
    return ops.LibraryPattern(pattern, pytest.importorskip("re2", reason="the extra re2 is not installed"))


def chosen(pattern: bytes) -> ops.CompiledPattern:
    """What is taken where the library is not installed."""
    expression, groups = parse(pattern)
    return PlainMatcher(expression, groups) if is_plain(expression) else automaton(pattern)


MATCHERS = pytest.mark.parametrize("compiled", [library, chosen, automaton])


def strings(*texts: bytes) -> np.ndarray[Any, Any]:
    made = np.empty(len(texts), object)
    made[:] = texts
    return made


def scalar(text: bytes) -> np.ndarray[Any, Any]:
    made = np.empty((), object)
    made[()] = text
    return made


@MATCHERS
def test_tensorflows_answers(compiled: Callable[[bytes], ops.CompiledPattern], monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[bytes, ops.CompiledPattern] = {}

    def found(pattern: bytes) -> ops.CompiledPattern:
        if pattern not in made:
            made[pattern] = compiled(pattern)
        return made[pattern]

    monkeypatch.setattr(ops, "pattern_of", found)
    texts, count = strings(*TEXTS), 0
    for row in GOLDEN["rows"]:
        pattern = bytes.fromhex(row["pattern"])
        if "error" in row:
            with pytest.raises(PatternError) as told:
                compiled(pattern)
            assert row["error"].endswith(f", error: {told.value}"), pattern
            continue
        matches = ops.regex_full_match(texts, scalar(pattern))
        assert "".join("01"[m] for m in matches.tolist()) == row["matches"], pattern
        ways = [(rewrite, every) for rewrite in REWRITES for every in (True, False)]
        for (rewrite, every), answers in zip(ways, row["replaced"], strict=True):
            replaced = ops.regex_replace(texts, scalar(pattern), scalar(rewrite), replace_global=every)
            right = [text if new is None else bytes.fromhex(new) for text, new in zip(TEXTS, answers, strict=True)]
            assert replaced.tolist() == right, (pattern, rewrite, every)
            count += len(right)
    assert count > 50_000


@MATCHERS
def test_patterns_that_go_back_for_ever_elsewhere(compiled: Callable[[bytes], ops.CompiledPattern]) -> None:
    text = b"a" * 20_000 + b"!"
    with limits(Deadline(60_000)):
        for pattern in (b"(a+)+$", b"(a|a)*$", b"(a*)*b", b"(a|aa)+$", b"(.*)*x"):
            assert not compiled(pattern).matches(text), pattern
            found = compiled(pattern).search(text, 18_000)
            assert found is None or found[0] == (20_001, 20_001)  # the empty one at the end
        assert compiled(b"(?:a?){100}a{100}").matches(b"a" * 100)


@pytest.mark.parametrize("absent", [True, False])
def test_who_is_given_which_pattern(absent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    other = without_library(monkeypatch, absent)
    plain = [b"[!.?]", rb"\s+", b"<br />", b"foo|ba+|b[xy]", rb"(\d+)", rb"\bfoo\b", b"(?i)stra\xc3\x9fe", rb"[^\w\s]+"]
    others = [b"a+b", b"(a+)+", b"a*a*", b"(a|b)c", b"(a|b)*", b"a??b", b"(a?){9}"]
    assert all(isinstance(ops.pattern_of(pattern), PlainMatcher) for pattern in plain)
    assert all(isinstance(ops.pattern_of(pattern), other) for pattern in others)
    ops.pattern_of.cache_clear()


def without_library(monkeypatch: pytest.MonkeyPatch, absent: bool) -> type:
    """Hides the library, or skips the test where there is none; gives who matches what is not plain."""
    ops.pattern_of.cache_clear()
    if absent:
        monkeypatch.setitem(sys.modules, "re2", None)
        return Matcher
    pytest.importorskip("re2", reason="the extra re2 is not installed")
    return ops.LibraryPattern


@pytest.mark.parametrize("absent", [True, False])
@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (rb"(a)\1", r"Invalid pattern: \(a\)\\1, error: invalid escape sequence: \\1; RE2's syntax has no backref"),
        (b"(?=a)", r"invalid perl operator: \(\?=; RE2's syntax has no backreferences and does not look ahead"),
        (b"(?<!a)b", r"invalid perl operator: \(\?<!; RE2's"),
        (b"a(", r"missing \): a\($"),
        (b"(" * 100_000, r"nests too deeply|missing \)|too large"),
    ],
)
def test_what_no_pattern_may_say(absent: bool, pattern: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_library(monkeypatch, absent)
    with pytest.raises(RunError, match=said):
        ops.regex_full_match(strings(b"a"), scalar(pattern))
    ops.pattern_of.cache_clear()


def test_patterns_that_are_too_large() -> None:
    for pattern in (rb"(\pL{100}){10}.{1000}", rb"((\pN\pL){30}){30}"):
        with pytest.raises(PatternError, match="pattern too large - compile failed"):
            automaton(pattern)


def test_the_clock_is_looked_at_inside_of_one_text() -> None:
    matcher = automaton(b"(x|a{0,500}){0,2}[ab]{0,500}c")
    with limits(Deadline(20)), pytest.raises(DeadlineError, match="the 20 ms of the run are over"):
        matcher.search(b"ab" * 500_000, 0)


def test_a_result_that_is_too_large_is_not_made() -> None:
    texts = strings(b"a" * 1_000)
    with limits(memory=1_000_000):
        assert len(ops.static_regex_replace(texts, pattern="a", rewrite="b" * 900)[0]) == 900_000
        with pytest.raises(RunError, match="out of memory: a text with all matches replaced"):
            ops.static_regex_replace(texts, pattern="a", rewrite="b" * 2_000)
