"""Quantized graphs of models that change their layout: right numbers, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse

LAYERS = """
    x = Placeholder(dtype=float, shape=[1,6,6,6])
    first = Transpose(x, to_first, T=float, Tperm=int32)
    a = Conv2D(first, k, T=float, data_format="NCHW", strides=[1,1,1,1], padding="SAME")
    shifted = BiasAdd(a, v, T=float, data_format="NCHW")
    r = Relu(shifted, T=float)
    q = Conv2D(r, k, T=float, data_format="NCHW", strides=[1,1,1,1], padding="SAME")
"""
BACK = "Transpose({}, to_last, T=float, Tperm=int32)"


def graph_of(rest: str) -> Graph:
    rng = np.random.default_rng(0)
    weights = {"k": rng.standard_normal((3, 3, 6, 6)) / 7, "v": rng.standard_normal(6)}
    orders = {"to_first": [0, 3, 1, 2], "to_last": [0, 2, 3, 1]}
    constants = [const(name, array.astype(np.float32)) for name, array in weights.items()]
    constants += [const(name, np.array(order, np.int32)) for name, order in orders.items()]
    return Graph([*parse(LAYERS + rest), *constants])


@pytest.mark.parametrize("mode", ["static", "weights"])
@pytest.mark.parametrize(
    ("rest", "is_right"),
    [
        (f"z = {BACK.format('q')}\ny = Relu(z, T=float)", True),
        (f"y = {BACK.format('q')}", False),
        (f"z = Relu(q, T=float)\ny = {BACK.format('z')}", False),
        ("y = Relu(q, T=float)", False),
    ],
)
def test_what_the_program_has_in_another_layout_is_right_or_refused(rest: str, is_right: bool, mode: str) -> None:
    graph = graph_of(rest)
    samples = np.random.default_rng(1).standard_normal((16, 6, 6, 6)).astype(np.float32)
    given = samples if mode == "static" else None
    if not is_right:  # every size is 6, so that no shape would tell
        with pytest.raises(UsageError, match=r"layout.*'first' \(Transpose\)"):
            pocketgraph.quantize(graph, given, outputs=["y"], mode=mode, form="pb")
        return
    model = pocketgraph.quantize(graph, given, outputs=["y"], mode=mode, form="pb")
    written = pocketgraph.formats.from_bytes(model.to_bytes())
    with pocketgraph.Session(graph, engine="reference") as before, pocketgraph.Session(written) as after:
        (wanted,), (found,) = (session.run(["y"], {"x": samples[:1]}) for session in (before, after))
    assert np.square(found - wanted).sum() < 1e-3 * np.square(wanted).sum()


def test_factors_by_channel_in_another_layout_stay_what_they_are() -> None:
    rng = np.random.default_rng(0)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[1,6,6,6])
        first = Transpose(x, to_first, T=float, Tperm=int32)
        r = Relu(first, T=float)
        last = Transpose(r, to_last, T=float, Tperm=int32)
        scaled = Mul(last, f, T=float)
        shifted = AddV2(scaled, v, T=float)
        turned = Transpose(shifted, turn, T=float, Tperm=int32)
        y = Conv2D(turned, k, T=float, strides=[1,1,1,1], padding="SAME")
    """)
    weights = {"k": rng.standard_normal((3, 3, 6, 6)) / 7, "f": np.arange(6) + 0.5, "v": np.arange(6) - 2.0}
    orders = {"to_first": [0, 3, 1, 2], "to_last": [0, 2, 3, 1], "turn": [0, 2, 1, 3]}
    constants = [const(name, array.astype(np.float32)) for name, array in weights.items()]
    constants += [const(name, np.array(order, np.int32)) for name, order in orders.items()]
    graph = Graph([*nodes, *constants])
    samples = rng.standard_normal((16, 6, 6, 6)).astype(np.float32)
    model = pocketgraph.quantize(graph, samples, outputs=["y"], form="pb", float_share=0)
    written = pocketgraph.formats.from_bytes(model.to_bytes())
    with pocketgraph.Session(graph, engine="reference") as before, pocketgraph.Session(written) as after:
        (wanted,), (found,) = (session.run(["y"], {"x": samples[:1]}) for session in (before, after))
    assert np.square(found - wanted).sum() < 1e-3 * np.square(wanted).sum()
