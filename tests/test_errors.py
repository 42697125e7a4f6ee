"""Hints for names that are not there: the nearest ones, in small pools and in large ones."""

import pytest

from pocketgraph.errors import COMPARED, did_you_mean, nearest

LARGE = [f"tower_{n % 7}/block{n // 100}/unit_{n % 100}/BatchNorm/FusedBatchNorm_{n}" for n in range(5 * COMPARED)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (LARGE[4321].replace("Fused", "Fsed"), LARGE[4321]),
        (LARGE[17].upper(), LARGE[17]),
        ("import/" + LARGE[4000], LARGE[4000]),
        (LARGE[2500].removeprefix("tower_1/"), LARGE[2500]),
    ],
)
def test_the_name_that_was_meant_is_first_of_thousands(name: str, meant: str) -> None:
    assert nearest(name, LARGE)[0] == meant


def test_a_part_of_a_name_is_found() -> None:
    assert nearest("softmax", [*LARGE, "head/predictions/softmax_v2"]) == ["head/predictions/softmax_v2"]


def test_nothing_near_is_no_hint() -> None:
    assert did_you_mean("xyzzy", ["image", "labels"]) == ""
    assert did_you_mean("", []) == ""
