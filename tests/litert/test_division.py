"""Integers divided by 0 and by -1: both engines give what TensorFlow gives, and the process lives.

LiteRT's remainder of the lowest number by -1 ends the process, so that each case runs in a child.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from litert.parts import lowered
from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.session import Session

CHILD = """
import json, sys
import numpy as np
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

op, kind, divisor, dividends, divisors = json.loads(sys.argv[1])
x, d = np.array(dividends, kind), np.array(divisors, kind)
if divisor == "fed":
    text = f"d = Placeholder(dtype={kind}, shape={list(d.shape)})"
else:
    text = f"d = Const({kind}{list(d.shape) if d.shape else ''} {divisors})"
graph = parse(f"x = Placeholder(dtype={kind}, shape={list(x.shape)})\\n{text}\\ny = {op}(x, d, T={kind})")
for name in (None, "reference"):
    with Session(graph, engine=name, cache_dir="") as session:
        try:
            print(session.run(["y"], {"x": x, **({"d": d} if divisor == "fed" else {})})[0].tolist(), flush=True)
        except RunError as error:
            print("Integer division by zero" in str(error), flush=True)
"""

KINDS = ("int8", "int16", "int32", "int64")
OPS = ("FloorMod", "FloorDiv", "TruncateDiv", "TruncateMod", "Div")


def both_engines(op: str, kind: str, divisor: str, dividends: object, divisors: object) -> list[str]:
    """What the default engine and the reference engine printed."""
    said = json.dumps([op, kind, divisor, dividends, divisors])
    child = subprocess.run([sys.executable, "-c", CHILD, said], capture_output=True, text=True, timeout=120)
    assert child.returncode == 0, child.stderr
    return child.stdout.splitlines()


@pytest.mark.parametrize("divisor", ["fed", "constant"])
@pytest.mark.parametrize(
    ("op", "kind"), [(op, "int32") for op in OPS] + [("FloorMod", kind) for kind in KINDS] + [("Mod", "int64")]
)
def test_the_lowest_number_by_minus_one_wraps(op: str, kind: str, divisor: str) -> None:
    low = int(np.iinfo(kind).min)
    expected = [low, -7, 8] if op.endswith("Div") else [0, 0, 0]
    assert both_engines(op, kind, divisor, [low, 7, -8], -1) == [str(expected)] * 2


@pytest.mark.parametrize("divisor", ["fed", "constant"])
@pytest.mark.parametrize("op", OPS)
def test_division_by_zero_is_the_same_error_on_both_engines(op: str, divisor: str) -> None:
    assert both_engines(op, "int32", divisor, [1, 2, 3], [1, 0, 1]) == ["True", "True"]


@pytest.mark.parametrize(("op", "values"), [("FloorMod", [1, -2, 0, 0]), ("FloorDiv", [2, 2, -1, 7])])
def test_divisors_of_more_elements_are_looked_at_one_by_one(op: str, values: list[int]) -> None:
    expected = str([values, values])
    dividends = [7, -8, 1, -7]
    assert both_engines(op, "int32", "fed", [dividends, dividends], [3, -3, -1, -1]) == [expected] * 2


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
