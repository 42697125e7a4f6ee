"""insert_logging, and freeze_requantization_ranges on the logs of what it inserts."""

from __future__ import annotations

import pathlib

import pytest

from pocketgraph.errors import GraphError, TransformError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import transform

GRAPH = """
    x = Placeholder(dtype=qint32)
    low = Const(float -9.0)
    high = Const(float 9.0)
    a = RequantizationRange(x, low, high, Tinput=qint32)
    y = Requantize(x, low, high, a:0, a:1, ^a, Tinput=qint32, out_type=quint8)
"""
NOISE = ["", "2026-11-21 something else", ";a__print__;__requant_min_max:[1", ";a__print__;__requant_min_max:[x][2]"]


def log_file(folder: pathlib.Path, ranges: list[tuple[float, float]], name: str = "a") -> pathlib.Path:
    path = folder / f"log{len(list(folder.iterdir()))}"
    lines = [f"I print.cc:1] ;{name}__print__;__requant_min_max:[{low}][{high}]" for low, high in ranges]
    path.write_bytes("\n".join([*NOISE, *lines, "\xff"]).encode("latin-1"))
    return path


def frozen(graph: Graph) -> tuple[float, float]:
    return float(graph["a/frozen_min"].tensor.numpy()), float(graph["a/frozen_max"].tensor.numpy())


HUNDRED = [(float(-i), float(i)) for i in range(1, 101)]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("", (-95.0, 96.0)),
        (", min_percentile=0, max_percentile=0", (-100.0, 100.0)),
        (", min_percentile=50, max_percentile=1", (-50.0, 100.0)),
        (", min_percentile=-7, max_percentile=100", (-100.0, 1.0)),
        (", min_percentile=1e9, max_percentile=nan", (-1.0, 1.0)),
    ],
)
def test_percentiles_of_the_log(parameters: str, expected: tuple[float, float], tmp_path: pathlib.Path) -> None:
    path = log_file(tmp_path, HUNDRED)
    changed = transform(parse(GRAPH), f'freeze_requantization_ranges(min_max_log_file="{path}"{parameters})')
    assert frozen(changed) == expected
    assert changed["y"].inputs == ("x", "low", "high", "a/frozen_min:0", "a/frozen_max:0", "^a/frozen_max")


def test_several_logs_count_together(tmp_path: pathlib.Path) -> None:
    first, second = log_file(tmp_path, [(-1, 1)]), log_file(tmp_path, [(-3, 5)])
    rule = f'freeze_requantization_ranges(min_max_log_file="{first}", min_max_log_file="{second}")'
    assert frozen(transform(parse(GRAPH), rule)) == (-3.0, 5.0)
    with pytest.raises(TransformError, match="a single 'min_max_log_file' parameter but found 2"):
        transform(parse(GRAPH), rule, compat="original")


def test_control_references_are_lost_only_in_the_original(tmp_path: pathlib.Path) -> None:
    rule = f'freeze_requantization_ranges(min_max_log_file="{log_file(tmp_path, [(-1, 1)])}")'
    with pytest.raises(TransformError, match="nonexistent nodes: 'a'"):
        transform(parse(GRAPH), rule, compat="original")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("freeze_requantization_ranges", "You must pass a file name to min_max_log_file"),
        ('freeze_requantization_ranges(min_max_log_file="")', "You must pass a file name to min_max_log_file"),
        ("freeze_requantization_ranges(min_max_log_file=no/such/file)", "cannot read the log 'no/such/file': No such"),
    ],
)
def test_without_a_log(rule: str, message: str) -> None:
    with pytest.raises(TransformError, match=message):
        transform(parse(GRAPH), rule)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("b", "aren't present in the graph: 'b'"),
        ("y", "expected to be a RequantizationRange op: y, but is: Requantize"),
    ],
)
def test_a_log_of_other_nodes(name: str, message: str, tmp_path: pathlib.Path) -> None:
    path = log_file(tmp_path, [(0, 1)], name)
    with pytest.raises(TransformError, match=message):
        transform(parse(GRAPH), f'freeze_requantization_ranges(min_max_log_file="{path}")')


def test_a_log_without_ranges(tmp_path: pathlib.Path) -> None:
    path = log_file(tmp_path, [])
    with pytest.raises(TransformError, match="No min/max range logs were found"):
        transform(parse(GRAPH), f'freeze_requantization_ranges(min_max_log_file="{path}")')


PORTS = """
    x = Placeholder(dtype=float)
    axis = Const(int32 0)
    s = Split(axis, x, num_split=3, T=float)
    y = Add(s:1, s:2, T=float)
    nothing = NoOp(^y)
    z = Identity(x, ^nothing, T=float)
"""


def test_only_what_is_read_is_printed_with_its_type() -> None:
    changed = transform(parse(PORTS), "insert_logging(prefix=s)")
    assert print_graph([changed["s__print__"]]).strip() == (
        's__print__ = Print(s:0, s:1, s:2, message="", first_n=-1, summarize=1024, T=float, U=[float,float])'
    )
    assert changed["y"].inputs == ("s:1", "s:2")  # as in the original, only the first output leads through the print
    original = transform(parse(PORTS), "insert_logging(prefix=s)", compat="original")
    assert len(original["s__print__"].attrs["U"]) == 3


def test_nodes_without_outputs_or_readers_are_passed_over() -> None:
    changed = transform(parse(PORTS), "insert_logging")
    printed = [name.removesuffix("__print__") for name in changed.nodes if name.endswith("__print__")]
    assert printed == ["x", "axis", "s", "y"]


def test_an_unknown_op_cannot_be_printed() -> None:
    graph = parse("x = Strange(T=float)\ny = Relu(x, T=float)")
    with pytest.raises((TransformError, GraphError), match="there is no op called 'Strange'"):
        transform(graph, "insert_logging")
    assert "y" in transform(graph, "insert_logging(op=Relu)")


def test_a_port_that_is_not_there_is_an_error() -> None:
    graph = parse("x = Placeholder(dtype=float)\ny = Relu(x:3, T=float)")
    with pytest.raises(TransformError, match="'x:3' is read, but there is no such output"):
        transform(graph, "insert_logging")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ((float("nan"), 1), r"gives 'a' the range \[nan\]\[1\], which is not of finite numbers"),
        ((-1, float("inf")), r"gives 'a' the range \[-1\]\[inf\], which is not of finite numbers"),
        ((3, 1), "the range of 'a' would be from 3 to 1"),
    ],
)
def test_what_is_no_range_is_refused(seen: tuple[float, float], said: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(TransformError, match=said):
        transform(parse(GRAPH), f'freeze_requantization_ranges(min_max_log_file="{log_file(tmp_path, [seen])}")')


def test_the_original_takes_what_is_no_range(tmp_path: pathlib.Path) -> None:
    graph = parse(GRAPH.replace(", ^a", ""))
    rule = f'freeze_requantization_ranges(min_max_log_file="{log_file(tmp_path, [(3, 1)])}")'
    assert frozen(transform(graph, rule, compat="original")) == (3.0, 1.0)


def test_a_range_of_one_value_is_one(tmp_path: pathlib.Path) -> None:
    rule = f'freeze_requantization_ranges(min_max_log_file="{log_file(tmp_path, [(2, 2)])}")'
    assert frozen(transform(parse(GRAPH), rule)) == (2.0, 2.0)
