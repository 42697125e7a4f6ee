"""Regular expressions: TensorFlow's answers, from the library of RE2 and from Python's matcher."""

import gzip
import json
import pathlib
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import re2

from pocketgraph.budgets import Deadline, limits
from pocketgraph.errors import RunError
from pocketgraph.kernels.text import regular_expressions as ops
from pocketgraph.kernels.text.plain_patterns import plain_pattern

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures"
GOLDEN = json.loads(gzip.decompress((FOLDER / "regular_expressions.json.gz").read_bytes()))
TEXTS = [bytes.fromhex(text) for text in GOLDEN["texts"]]
REWRITES = [bytes.fromhex(text) for text in GOLDEN["rewrites"]]


MATCHERS = pytest.mark.parametrize("compiled", [ops.library_pattern, ops.pattern_of])


def strings(*texts: bytes) -> np.ndarray[Any, Any]:
    made = np.empty(len(texts), object)
    made[:] = texts
    return made


def scalar(text: bytes) -> np.ndarray[Any, Any]:
    made = np.empty((), object)
    made[()] = text
    return made


@MATCHERS
def test_tensorflows_answers(compiled: Callable[[bytes], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[bytes, Any] = {}

    def found(pattern: bytes) -> Any:
        if pattern not in made:
            made[pattern] = compiled(pattern)
        return made[pattern]

    monkeypatch.setattr(ops, "pattern_of", found)
    texts, count = strings(*TEXTS), 0
    for row in GOLDEN["rows"]:
        pattern = bytes.fromhex(row["pattern"])
        if "error" in row:
            with pytest.raises(RunError) as told:
                compiled(pattern)
            assert row["error"].endswith(str(told.value).split("; RE2's")[0].partition(", error:")[2]), pattern
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
def test_patterns_that_go_back_for_ever_elsewhere(compiled: Callable[[bytes], Any]) -> None:
    text = b"a" * 20_000 + b"!"
    with limits(Deadline(60_000)):
        for pattern in (b"(a+)+$", b"(a|a)*$", b"(a*)*b", b"(a|aa)+$", b"(.*)*x"):
            assert compiled(pattern).fullmatch(text) is None, pattern
            found = compiled(pattern).search(text, 18_000)
            assert found is None or found.span() == (20_001, 20_001)  # the empty one at the end
        assert compiled(b"(?:a?){100}a{100}").fullmatch(b"a" * 100)


def test_who_is_given_which_pattern() -> None:
    plain = [
        *(b"[!.?]", rb"\s+", b"<br />", b"foo|ba+|b[xy]", rb"(\d+)", rb"\bfoo\b", rb"[^\w\s]+", b"([?.!,\xc2\xbf])"),
        *(rb"[^\x00-\x7f]+", b"[[:punct:]]", rb"[!\"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~']"),
    ]
    others = [b"a+b", b"(a+)+", b"a*a*", b"(a|b)c", b"(a|b)*", b"a??b", b"(a?){9}", b"a*", rb"\pL", b"(?i)k", b"a{101}"]
    for pattern in plain:
        assert isinstance(ops.pattern_of(pattern), re.Pattern), pattern
    for pattern in others:
        assert isinstance(ops.pattern_of(pattern), re2._Regexp), pattern


ATOMS = [
    *(
        "a",
        "K",
        "é",
        ".",
        "[ab]",
        "[^a]",
        r"\w",
        r"\W",
        r"\s",
        r"\D",
        "^",
        "$",
        r"\b",
        "-",
        "[^é]",
        "[?¿]",
        r"\x41",
        r"\.",
    ),
    *(
        r"[^\x00-\x7F]",
        "[[:punct:]]",
        "[]a]",
        "[^]a]",
        "[a-]",
        r"[\w-]",
        r"[\w.-]",
        r"[a\-z]",
        "[a-c-e]",
        r"\_",
        "{",
        "]",
    ),
    *(
        "(",
        ")",
        "|",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{,3}",
        "{0}",
        "{2,1}",
        "??",
        "[[:foo:]]",
        r"[\]]",
        r"[\W]",
        "[--a]",
        "[[]",
    ),
]


def test_what_is_given_to_pythons_matcher_means_the_same() -> None:
    rng = random.Random(0)
    texts = [
        *TEXTS,
        "¿qué? a\\b[c]{2}".encode(),
        b"\xc0\x80 \xe0\x80\x80",
        b"\xf4\x90\x80\x80\xf5\x80\x80\x80",
        b"-]A.b\x0b",
    ]
    plain = 0
    for _ in range(6_000):
        drawn = "".join(rng.choices(ATOMS, k=rng.randint(1, 5))).encode()
        pattern = drawn if rng.random() < 0.7 else b"(" + drawn + b")"
        by_python = plain_pattern(pattern)
        if by_python is None:
            continue
        plain += 1
        by_library = ops.library_pattern(pattern)
        assert by_python.groups == by_library.groups
        for text in texts:
            assert bool(by_python.fullmatch(text)) == bool(by_library.fullmatch(text)), (pattern, text)
            replaced = [ops.replace_all(each, [b"<", 0, b">"], text) for each in (by_python, by_library)]
            assert replaced[0] == replaced[1], (pattern, text)
    assert plain > 1_500


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
def test_what_no_pattern_may_say(pattern: bytes, said: str) -> None:
    with pytest.raises(RunError, match=said):
        ops.regex_full_match(strings(b"a"), scalar(pattern))


def test_a_result_that_is_too_large_is_not_made() -> None:
    texts = strings(b"a" * 1_000)
    with limits(memory=1_000_000):
        assert len(ops.static_regex_replace(texts, pattern="a", rewrite="b" * 900)[0]) == 900_000
        with pytest.raises(RunError, match="out of memory: a text with all matches replaced"):
            ops.static_regex_replace(texts, pattern="a", rewrite="b" * 2_000)
