"""Sizes of tensors for texts, in few runs."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.quantization import text_probing
from pocketgraph.quantization.text_inputs import text_inputs
from pocketgraph.quantization.text_probing import TensorSizes, probed_where_possible

STEPS = 30


def test_a_chain_of_tensors_is_looked_at_in_few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = "".join(f"s{i} = Abs(s{i - 1}, T=int32)\n" for i in range(1, STEPS))
    graph = parse(f"words = Placeholder(dtype=string, shape=[?])\ns0 = StringLength(words)\n{steps}")
    texts = [[np.array([b"a"] * count, object)] for count in (2, 5)]
    runs = []
    own = text_probing.probed
    monkeypatch.setattr(text_probing, "probed", lambda *given: runs.append(1) or own(*given))
    names = [f"s{i}:0" for i in range(STEPS)]
    sizes = TensorSizes(graph, text_inputs(graph, ["s29"], ()), texts, set(graph.nodes), set(graph.nodes))
    found = [sizes.of([name])[0] for name in names]
    assert [[array.shape for array in arrays] for arrays in found] == [[(2,), (5,)]] * STEPS
    assert len(runs) <= text_probing.FEW_RUNS + -(-STEPS // text_probing.AHEAD)


def test_what_cannot_be_had_is_left_out() -> None:
    graph = parse("""
        words = Placeholder(dtype=string, shape=[?])
        lengths = StringLength(words)
        never = Const(bool false)
        branch = Switch(lengths, never, T=int32)
    """)
    texts = [[np.array([b"a", b"bcd"], object)]]
    found = probed_where_possible(graph, text_inputs(graph, ["lengths"], ()), ["branch:1", "lengths:0"], texts)
    assert list(found) == ["lengths:0"]
    np.testing.assert_array_equal(found["lengths:0"][0], [1, 3])
