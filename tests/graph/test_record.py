"""Values of named fields: made like dataclasses, equal by their fields, unchangeable."""

import copy
import pickle

import pytest

from pocketgraph.graph import Func, Function, Signature, Versions
from pocketgraph.graph.record import Record


class Pair(Record):
    left: int
    right: str = "r"


class Other(Record):
    left: int
    right: str = "r"


def test_fields_are_given_in_order_or_by_name_and_have_defaults() -> None:
    assert (Pair(1).left, Pair(1).right) == (1, "r")
    assert Pair(1, "x") == Pair(right="x", left=1)
    assert Versions() == Versions(0, 0, ())
    assert Func("f").attrs == {}
    assert Function("f").nodes == ()
    assert Signature({"x": "x:0"}, {}).method == ""


def test_equal_are_those_of_one_class_with_equal_fields() -> None:
    assert Pair(1) != Pair(2)
    assert Pair(1) != Other(1)
    assert Pair(1) != (1, "r")
    assert len({Pair(1), Pair(1, "r"), Pair(2)}) == 2
    assert repr(Pair(1)) == "Pair(left=1, right='r')"


def test_a_record_does_not_change() -> None:
    pair = Pair(1)
    with pytest.raises(AttributeError, match="does not change"):
        pair.left = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="does not change"):
        del pair.left
    assert pair == Pair(1)


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, "x", 2), {}), ((1,), {"left": 2}), ((1,), {"middle": 2})])
def test_wrong_fields_are_refused(values: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Pair takes left, right"):
        Pair(*values, **named)  # type: ignore[arg-type]


def test_a_record_is_copied_and_pickled() -> None:
    versions = Versions(27, 12, (3,))
    assert copy.deepcopy(versions) == versions
    assert pickle.loads(pickle.dumps(versions)) == versions


def test_a_copy_has_other_values() -> None:
    pair = Pair(1, "x")
    assert pair.replace(left=2) == Pair(2, "x")
    assert pair == Pair(1, "x")
    with pytest.raises(TypeError, match="Pair takes left, right"):
        pair.replace(middle=2)


class Table(Record):
    fields: str


def test_a_field_may_be_called_fields_and_no_record_has_such_without() -> None:
    assert Table("a b").replace(fields="c") == Table("c")
    assert not hasattr(Pair(1), "fields")
    with pytest.raises(TypeError, match="Table takes fields"):
        Table()  # type: ignore[call-arg]
