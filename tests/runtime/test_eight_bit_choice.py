"""Which parts of a graph of codes keep the original's arithmetic, and which run in floats."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import QUINT8
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.quantized.layers import _shifted_window
from pocketgraph.kernels.windows import window
from pocketgraph.runtime.eight_bit import arithmetic_choice as eight_bit_choice
from pocketgraph.runtime.eight_bit.eight_bit_parts import begins_alike

F32 = np.float32


def test_few_layers_keep_the_codes_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eight_bit_choice, "MOST_SEARCHED", 0)
    nodes = [Node(f"m{i}", "QuantizedMatMul", ["x", "w", "l", "h", "l", "h"]) for i in range(12)]
    shapes = eight_bit_choice.shapes_of(Graph(parse("x = Placeholder(dtype=quint8, shape=[2])")), {})
    assert eight_bit_choice.wants_codes(nodes[:11], shapes, True, 0)
    monkeypatch.setattr(eight_bit_choice, "products", lambda node, shapes: 10**9)
    assert eight_bit_choice.wants_codes(nodes[:11], shapes, True, 0)
    assert not eight_bit_choice.wants_codes(nodes, shapes, True, 0)


@pytest.mark.parametrize(("sums", "codes"), [(10**6 + 1, False), (10**6, True), (10**5, True)])
def test_few_sums_of_fixed_ranges_keep_the_codes(monkeypatch: pytest.MonkeyPatch, sums: int, codes: bool) -> None:
    """Of 10^9 multiplications; matrix products of thousands of values give few sums, pictures many."""
    shapes = eight_bit_choice.shapes_of(Graph(parse("x = Placeholder(dtype=quint8, shape=[2])")), {})
    monkeypatch.setattr(eight_bit_choice, "products", lambda node, shapes: 10**9)
    monkeypatch.setattr(eight_bit_choice, "values", lambda node, shapes: sums)
    layer = Node("m", "QuantizedMatMul", ["x", "w", "l", "h", "l", "h"])
    assert eight_bit_choice.wants_codes([layer], shapes, False, 0) == codes


@pytest.mark.parametrize(
    ("layers", "follows", "codes"),
    [(4, False, True), (10, False, False), (16, False, True), (60, False, True), (10, True, True), (60, True, False)],
)
def test_deep_networks_of_fixed_ranges_are_exact_however_large(layers: int, follows: bool, codes: bool) -> None:
    """Ten million products a layer."""
    lines = [
        f"m{i} = QuantizedMatMul(x, w, low, high, low, high, T1=quint8, T2=quint8, Toutput=qint32)"
        for i in range(layers)
    ]
    constants = [const("w", np.zeros((100, 100), np.uint8), QUINT8), const("low", F32(0)), const("high", F32(1))]
    graph = Graph([*parse("\n".join(["x = Placeholder(dtype=quint8, shape=[1000,100])", *lines])), *constants])
    shapes = eight_bit_choice.shapes_of(graph, {Endpoint("x", 0): (QUINT8, (1000, 100))})
    inside = [node for node in graph if node.op == "QuantizedMatMul"]
    assert eight_bit_choice.wants_codes(inside, shapes, follows, 0) == codes


@pytest.mark.parametrize("is_valid", [True, False])
def test_windows_are_known_to_begin_where_those_of_floats_do(is_valid: bool) -> None:
    padding = "VALID" if is_valid else "SAME"
    for size, taps, stride in itertools.product(range(4, 40), range(1, 12), range(1, 9)):
        if taps <= size:
            _, start = _shifted_window(size, taps, stride, padding)
            begins = start == -window(size, taps, stride, padding).before
            assert begins_alike(size, taps, stride, is_valid) == begins, (size, taps, stride)
