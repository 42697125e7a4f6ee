"""The transform string: what the original accepts, what it refuses, and that nothing makes it hang."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.errors import UsageError
from pocketgraph.transforms.tool import parse_transforms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n\v\f\r", []),
        ("foo", [("foo", {})]),
        ("foo bar", [("foo", {}), ("bar", {})]),
        ("foo()bar()", [("foo", {}), ("bar", {})]),
        ("foo(a=1)\nbar", [("foo", {"a": ["1"]}), ("bar", {})]),
        ("foo(a=1, b=2)", [("foo", {"a": ["1"], "b": ["2"]})]),
        ("foo(a=1 b=2\n\tc=3)", [("foo", {"a": ["1"], "b": ["2"], "c": ["3"]})]),
        ("foo(,a=1)", [("foo", {"a": ["1"]})]),
        ("foo( a=1)", [("foo", {"a": ["1"]})]),
        ("foo(a=1, a=2)", [("foo", {"a": ["1", "2"]})]),
        ('foo(a="")', [("foo", {"a": [""]})]),
        ('foo(a="1,2 3:*)=[]")', [("foo", {"a": ["1,2 3:*)=[]"]})]),
        (r'foo(a="x\"y\\")', [("foo", {"a": [r"x\"y\\"]})]),
        ("foo(a=-1.5/x_y)", [("foo", {"a": ["-1.5/x_y"]})]),
        ("foo(a=1\"')", [("foo", {"a": ["1"]})]),
        ("foo(a=1')", [("foo", {"a": ["1"]})]),
        ('foo(a="1"")', [("foo", {"a": ["1"]})]),
        ("foo(a=1b=2)", None),
        ("3 _", [("3", {}), ("_", {})]),
        ("\\\n  foo \\\r\n bar(a=1, \\\n b=2)", [("foo", {}), ("bar", {"a": ["1"], "b": ["2"]})]),
    ],
)
def test_accepts_what_the_original_accepts(text: str, expected: list[tuple[str, dict[str, list[str]]]] | None) -> None:
    if expected is None:
        with pytest.raises(UsageError):
            parse_transforms(text)
    else:
        assert parse_transforms(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo, bar", "Looking for transform name, but found ', bar'; separate transforms with spaces"),
        ("foo bar)", r"Looking for transform name, but found '\)'"),
        ("foo (a=1)", "Looking for transform name, but found .*right behind the name"),
        ("\\ foo", "Looking for transform name"),
        ("\\", "Looking for transform name"),
        ("foo(a=1", r"found the end of the string; close the parameters with '\)'"),
        ("foo(", "Looking for parameter name, but found the end of the string"),
        ("foo(a", "Looking for =, but found the end of the string"),
        ("foo(a=", "Looking for parameter value, but found the end of the string"),
        ("foo(a=1,", "found the end of the string"),
        ("foo(a=1 )", "Looking for parameter name"),
        ("foo(a=1,)", "Looking for parameter name"),
        ("foo(a=1 , b=2)", "Looking for parameter name"),
        ("foo(a=1,,b=2)", "Looking for parameter name"),
        ("foo( )", "Looking for parameter name"),
        ("foo(a =1)", "Looking for =, but found '=1"),
        ("foo(a= 1)", "Looking for parameter value"),
        ('foo(a="1)', "Looking for parameter value"),
        ("foo(a=1:2)", "Looking for parameter name, but found ':2"),
        ("foo(a=é)", "Looking for parameter value"),
        ("é", "Looking for transform name"),
    ],
)
def test_refuses_the_rest_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_transforms(text)
    assert "\n" not in str(caught.value)


@settings(max_examples=400, deadline=1000)
@given(st.text(alphabet="ab1_(),=\"' \n\\-./:\t", max_size=60) | st.text(max_size=30))
def test_any_string_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        for name, parameters in parse_transforms(text):
            assert name
            assert all(values for values in parameters.values())


names = st.from_regex(r"[A-Za-z0-9_]{1,8}", fullmatch=True)
values = st.text(st.characters(exclude_characters='"\\', codec="utf-8"), max_size=10)


@settings(max_examples=100, deadline=1000)
@given(
    st.lists(st.tuples(names, st.dictionaries(names, st.lists(values, min_size=1, max_size=2), max_size=3)), max_size=4)
)
def test_what_is_written_is_read(steps: list[tuple[str, dict[str, list[str]]]]) -> None:
    text = " ".join(
        name + "(" + ", ".join(f'{key}="{value}"' for key, listed in parameters.items() for value in listed) + ")"
        for name, parameters in steps
    )
    assert parse_transforms(text) == steps


def test_long_strings_take_linear_time() -> None:
    assert len(parse_transforms("a " * 100_000)) == 100_000
    assert len(parse_transforms("f(" + 'a="x" ' * 50_000 + "b=1)")[0][1]["a"]) == 50_000
    with pytest.raises(UsageError):
        parse_transforms('f(a="' + "\\" * 100_001)
