"""Node times and messages about loops that were written out: they speak of the graph's own nodes, round by round."""

import pathlib
from collections import Counter

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.errors import RunError
from pocketgraph.runtime import Session, StepTrace
from pocketgraph.runtime.profiling.stat_summarizer import StatSummarizer
from pocketgraph.runtime.tensor_names import before_rounds

RECURRENT = pathlib.Path(__file__).parent / "recurrent"


def test_a_node_of_a_loop_has_a_time_a_round_under_its_own_name() -> None:
    with np.load(RECURRENT / "basic_lstm.npz") as data:
        x, wanted = data["in_0_x:0"], data["out_0_rnn/transpose_1:0"]
    stats = StatSummarizer()
    with Session(graph_file(RECURRENT, "basic_lstm")) as session:
        for _ in range(2):
            trace = StepTrace()
            (found,) = session.run(["rnn/transpose_1"], {"x": x}, trace=trace)
            np.testing.assert_allclose(found, wanted, atol=1e-6)
            stats.add_run(trace.nodes)
        of_graph = [timing for timing in trace.nodes if timing.name in session.graph.nodes]
        assert not [timing.name for timing in trace.nodes if "/round_" in timing.name]
        steps = x.shape[1]
        products = Counter(timing.name for timing in of_graph if timing.op in ("MatMul", "BatchMatMulV2"))
        assert steps in products.values(), products
    (name,) = [name for name, count in products.items() if count == steps][:1]
    assert stats.records[name].times_called == 2 * steps
    assert stats.records[name].time.count == 2 * steps


def test_the_rounds_of_a_long_loop_are_counted_over_its_chunks() -> None:
    loops = RECURRENT.parent / "loops"
    with np.load(loops / "long_lstm.npz") as data, Session(graph_file(loops, "long_lstm")) as session:
        x = data["in_0_x:0"]
        trace = session.profile(["rnn/transpose_1"], {"x": x})
        products = Counter(t.name for t in trace.nodes if t.op in ("MatMul", "BatchMatMulV2"))
        assert products == {name: x.shape[1] for name in products if name in session.graph.nodes}
        assert products, "there is at least one"


def test_a_limit_names_the_graphs_node() -> None:
    with np.load(RECURRENT / "basic_lstm.npz") as data:
        x = data["in_0_x:0"]
    with (
        Session(graph_file(RECURRENT, "basic_lstm"), engine="reference", memory_limit=2000) as session,
        pytest.raises(RunError, match="out of memory") as told,
    ):
        session.run(["rnn/transpose_1"], {"x": np.tile(x, (50, 1, 1))})
    assert "/round_" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "base", "which"),
    [
        ("rnn/while/mul/round_3", "rnn/while/mul", "round 3"),
        ("while/while/mul/round_1/round_2", "while/while/mul", "round 2, 1"),
        ("while/size/once", "while/size", ""),
        ("while/size/once/round_0", "while/size", "round 0"),
        ("round_3", "round_3", ""),
        ("while/mul/round_0_", "while/mul", "round 0"),  # of what is left behind the chunks of a long loop
        ("while/size/once__", "while/size", ""),
        ("a/round_3/b", "a/round_3/b", ""),
        ("a/round_x", "a/round_x", ""),
    ],
)
def test_names_before_a_loop_was_written_out(name: str, base: str, which: str) -> None:
    assert before_rounds(name) == (base, which)
