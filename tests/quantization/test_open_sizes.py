"""What is said where the sizes of a model's inputs do not fit together."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import UsageError
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.float_program import size_hint
from quantize_nets import float_program


def test_open_sizes_are_named_where_a_shape_is_not_known() -> None:
    """A state of another batch than the steps, as of a recurrent network whose batch is its second size."""
    graph = parse("""
        steps = Placeholder(dtype=float, shape=[?,?,3])
        state = Placeholder(dtype=float, shape=[1,?,4])
        axis = Const(int32 2)
        both = ConcatV2(steps, state, axis, T=float, Tidx=int32, N=2)
        y = Relu(both, T=float)
    """)
    with pytest.raises(UsageError, match="only known when running") as error:
        float_program(graph, ["y"], {"steps": (1, 20, 3), "state": (1, 1, 4)})
    assert "say how large its inputs are: shapes=steps:N,N,3 shapes=state:1,N,4, with numbers for N" in str(error.value)
    assert float_program(graph, ["y"], {"steps": (1, 20, 3), "state": (1, 20, 4)}).outputs


@pytest.mark.parametrize(
    ("shape", "asked"), [((None, 8), "x:N,8"), ((None, None), "x:N,N"), ((2, 8), ""), ((None,), ""), ((), "")]
)
def test_sizes_are_asked_for_where_rows_leave_one_open(shape: tuple[int | None, ...], asked: str) -> None:
    hint = size_hint({"x:0": shape})
    assert hint == (f"say how large its inputs are: shapes={asked}, with numbers for N" if asked else "")


@pytest.mark.parametrize("form", ["tflite", "pb"])
def test_a_file_of_fixed_sizes_says_those_that_it_took_from_arrays(form: str) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,2,3])
        w = Const(float[1,1,3,4] {np.linspace(-1, 1, 12).reshape(1, 1, 3, 4).tolist()})
        y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
    """)
    samples, told = np.random.default_rng(0).normal(size=(12, 5, 2, 3)).astype(np.float32), list[str]()
    pocketgraph.quantize(graph, {"x": samples}, outputs=["y"], form=form, notify=told.append)
    said = [note for note in told if "open" in note]
    assert said == (
        ["the model leaves sizes open, and the file has [1, 5, 2, 3] for 'x', as samples have"] * (form != "pb")
    )
