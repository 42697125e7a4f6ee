"""Named tuples that are quick to make: as typing's."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import pytest

from pocketgraph.graph.named_tuple import NamedTuple


class Size(NamedTuple):
    height: int
    width: int = 7
    name: str = "window"

    @property
    def area(self) -> int:
        return self.height * self.width


class Same(typing.NamedTuple):
    height: int
    width: int = 7
    name: str = "window"


class Odd(Size):
    def doubled(self) -> int:
        return 2 * self.height


def test_it_is_as_typings() -> None:
    calls: tuple[tuple[Any, dict[str, Any]], ...] = (
        ((1,), {}), ((1, 2, "x"), {}), ((), {"name": "y", "height": 3}), ((4,), {"name": "z"}),
    )  # fmt: skip
    for values, named in calls:
        ours, theirs = Size(*values, **named), Same(*values, **named)
        assert tuple(ours) == tuple(theirs) == ours
        assert hash(ours) == hash(theirs)
        assert (ours.height, ours.width, ours.name) == (theirs.height, theirs.width, theirs.name)
        assert ours._asdict() == theirs._asdict()
        assert repr(ours) == repr(theirs).replace("Same", "Size")
        assert tuple(ours._replace(width=9, name="")) == theirs._replace(width=9, name="")
    assert Size._fields == Same._fields
    assert Size._field_defaults == Same._field_defaults
    assert Size._make([1, 2, "x"]) == Size(1, 2, "x")
    assert Size(2, 3).area == 6


def test_it_is_taken_apart_and_matched() -> None:
    height, width, name = Size(1)
    assert (height, width, name) == (1, 7, "window")
    match Size(5, 6):
        case Size(height, width=6):
            assert height == 5
        case _:
            pytest.fail("no match")


def test_its_fields_do_not_change_and_there_are_no_others() -> None:
    size = Size(1)
    for name in ("height", "depth"):
        with pytest.raises(AttributeError):
            setattr(size, name, 2)
    assert not hasattr(size, "__dict__")


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, "x", 4), {}), ((1,), {"height": 2}), ((1,), {"depth": 2})]
)
def test_wrong_fields_are_refused(values: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Size takes height, width, name"):
        Size(*values, **named)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Same(*values, **named)  # type: ignore[arg-type]


def test_an_unknown_field_is_not_replaced() -> None:
    with pytest.raises(TypeError, match="Size takes height, width, name"):
        Size(1)._replace(depth=2)  # type: ignore[call-arg]


def test_a_field_with_a_default_before_one_without_is_refused() -> None:
    members = {"__annotations__": {"height": int, "width": int}, "height": 1}
    with pytest.raises(TypeError, match="without a default"):
        kind: Any = type(Size)
        kind("Wrong", (NamedTuple,), members)


def test_it_is_copied_and_pickled_and_may_have_subclasses() -> None:
    for size in (Size(1, 2, "x"), Odd(1, 2, "x")):
        for other in (copy.copy(size), copy.deepcopy(size), pickle.loads(pickle.dumps(size))):
            assert (type(other), other) == (type(size), size)
    assert Odd(3).doubled() == 6
    assert Odd(3)._replace(height=4) == Odd(4)
    assert isinstance(Odd(3)._replace(height=4), Odd)
