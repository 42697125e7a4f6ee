"""Integers divided by 0 and by -1: both engines give what TensorFlow gives, and the process lives.

LiteRT's remainder of the lowest number by -1 ends the process, so that the cases run in a child.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import pocketgraph
from litert.parts import lowered
from pocketgraph.errors import RunError
from pocketgraph.exporting.programs import LackingError
from pocketgraph.graph import DType
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.session import Session

CHILD = """
import json, sys
import numpy as np
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

for op, kind, divisor, dividends, divisors in json.loads(sys.argv[1]):
    x, d = np.array(dividends, kind), np.array(divisors, kind)
    if divisor == "fed":
        text = f"d = Placeholder(dtype={kind}, shape={list(d.shape)})"
    else:
        text = f"d = Const({kind}{list(d.shape) if d.shape else ''} {divisors})"
    graph = parse(f"x = Placeholder(dtype={kind}, shape={list(x.shape)})\\n{text}\\ny = {op}(x, d, T={kind})")
    said = []
    for name in (None, "reference"):
        with Session(graph, engine=name, cache_dir="") as session:
            try:
                said.append(session.run(["y"], {"x": x, **({"d": d} if divisor == "fed" else {})})[0].tolist())
            except RunError as error:
                said.append(str(error))
    print(json.dumps(said), flush=True)
"""

KINDS = ("int8", "int16", "int32", "int64")
OPS = ("FloorMod", "FloorDiv", "TruncateDiv", "TruncateMod", "Div")
FED = ("fed", "constant")
BY_MINUS_ONE = [
    (op, kind, divisor, [int(np.iinfo(kind).min), 7, -8], -1)
    for op, kind in [
        *((op, "int32") for op in OPS),
        *(("FloorMod", kind) for kind in KINDS if kind != "int32"),
        ("Mod", "int64"),
    ]
    for divisor in FED
]
BY_ZERO = [(op, "int32", divisor, [1, 2, 3], [1, 0, 1]) for op in OPS for divisor in FED]
ROWS = [[7, -8, 1, -7]] * 2
OF_SEVERAL = {op: (op, "int32", "fed", ROWS, [3, -3, -1, -1]) for op in ("FloorMod", "FloorDiv")}


@cache
def answers() -> dict[str, list[Any]]:
    """What the default engine and the reference engine gave for each case; a case that ends the child has none."""
    waiting = [*BY_MINUS_ONE, *BY_ZERO, *OF_SEVERAL.values()]
    found: dict[str, list[Any]] = {}
    while waiting:
        child = subprocess.run([sys.executable, "-c", CHILD, json.dumps(waiting)], capture_output=True, text=True)
        lines = child.stdout.splitlines()
        found |= {str(case): json.loads(line) for case, line in zip(waiting, lines, strict=False)}
        found |= {str(case): [child.stderr] for case in waiting[len(lines) :][:1]}
        waiting = waiting[len(lines) + 1 :]
    return found


def named(case: tuple[Any, ...]) -> str:
    return "-".join(case[:3])


@pytest.mark.parametrize("case", BY_MINUS_ONE, ids=named)
def test_the_lowest_number_by_minus_one_wraps(case: tuple[Any, ...]) -> None:
    op, _, _, (low, *_), _ = case
    expected = [low, -7, 8] if op.endswith("Div") else [0, 0, 0]
    assert answers()[str(case)] == [expected] * 2


@pytest.mark.parametrize("case", BY_ZERO, ids=named)
def test_division_by_zero_is_the_same_error_on_both_engines(case: tuple[Any, ...]) -> None:
    both = answers()[str(case)]
    assert len(both) == 2
    assert all("Integer division by zero" in said for said in both)


@pytest.mark.parametrize(("op", "values"), [("FloorMod", [1, -2, 0, 0]), ("FloorDiv", [2, 2, -1, 7])])
def test_divisors_of_more_elements_are_looked_at_one_by_one(op: str, values: list[int]) -> None:
    assert answers()[str(OF_SEVERAL[op])] == [[values, values]] * 2


def lowered_codes(text: str, kind: str = "int32") -> list[str]:
    graph = parse(text)
    fed = [node.name for node in graph if node.op == "Placeholder"]
    specs = {f"{name}:0": (DType.named(kind), (4,)) for name in fed}
    nodes = [node for node in graph if node.op not in ("Placeholder", "Const")]
    return [operation.code for operation in lowered(graph, nodes, [*specs], ["y:0"], specs).operations]


def test_a_known_harmless_divisor_costs_nothing() -> None:
    text = "x = Placeholder(dtype=int32, shape=[4])\nd = Const(int32 3)\ny = FloorMod(x, d, T=int32)"
    assert lowered_codes(text) == ["FLOOR_MOD"]
    assert "SELECT_V2" in lowered_codes(text.replace("int32 3", "int32 -1"))


def test_places_of_the_largest_are_divided(tmp_path: pathlib.Path) -> None:
    """As heads of key points do, in int64, which LiteRT divides as int32 alone."""
    graph = parse(
        "x = Placeholder(dtype=float, shape=[2,12])\naxis = Const(int32 1)\nwide = Const(int64 4)\n"
        "place = ArgMax(x, axis, T=float, Tidx=int32, output_type=int64)\ny = FloorDiv(place, wide, T=int64)"
    )
    pocketgraph.export(graph, tmp_path / "net.tflite")
    x = np.zeros((2, 12), np.float32)
    x[0, 11] = x[1, 7] = 1
    with Session(tmp_path / "net.tflite") as session:
        found = session.run_signature({"x": x})["y"]
    np.testing.assert_array_equal(found, np.int64([2, 1]))
    assert found.dtype == np.int64
    with pytest.raises(LackingError, match="does not take int64"):
        pocketgraph.export(graph, tmp_path / "other.tflite", inputs=["place"])


def test_floats_are_divided_by_zero() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[3])\nd = Const(float 0)\ny = FloorMod(x, d, T=float)")
    with Session(graph, engine="litert") as session:
        assert np.isnan(session.run(["y"], {"x": np.ones(3, np.float32)})[0]).all()


def test_a_session_goes_on_after_a_division_by_zero() -> None:
    graph = parse(
        "x = Placeholder(dtype=int32, shape=[2])\nd = Placeholder(dtype=int32, shape=[2])\ny = FloorMod(x, d, T=int32)"
    )
    x = np.array([7, -7], np.int32)
    with Session(graph) as session:
        for _ in range(3):
            with pytest.raises(RunError, match="division by zero"):
                session.run(["y"], {"x": x, "d": np.array([3, 0], np.int32)})
            assert session.run(["y"], {"x": x, "d": np.array([3, -3], np.int32)})[0].tolist() == [1, -1]
