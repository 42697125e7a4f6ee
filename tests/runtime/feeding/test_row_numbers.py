"""Floats that choose rows of a table are made up as whole numbers of rows, so that rows are compared."""

import pathlib

import numpy as np
import pytest

from pocketgraph.formats import load
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.verification import verify
from pocketgraph.runtime.feeding.row_numbers import rows_chosen_by
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

WORDS = """
    x = Placeholder(dtype=float, shape=[?,30])
    table = Const(float[ROWS, 1])
    axis = Const(int32 0)
    whole = Identity(x, T=float)
    rows = Cast(whole, SrcT=float, DstT=int32)
    embedded = GatherV2(table, rows, axis, Tparams=float, Tindices=int32, Taxis=int32)
    y = FIRST(embedded, T=float)
"""


def words(rows: int, first: str = "Neg") -> str:
    values = ",".join(f"[{row}.5]" for row in range(rows))
    return WORDS.replace("float[ROWS, 1]", f"float [{values}]").replace("FIRST", first)


@pytest.mark.parametrize(("rows", "most"), [(5, 5), (400, 10)])
def test_numbers_of_all_rows_are_made_up(rows: int, most: int) -> None:
    graph = parse(words(rows))
    feeds = synthetic_feeds(graph, ["y"])
    assert set(np.unique(feeds["x"]).tolist()) == set(range(most))
    assert feeds["x"].dtype == np.float32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_whole_numbers_are_of_rows_that_a_table_has(dtype: str) -> None:
    graph = parse(words(5).replace("dtype=float", f"dtype={dtype}").replace("x, T=float", f"x, T={dtype}"))
    graph = graph.map_nodes(lambda node: node.with_attrs(SrcT=graph["x"].dtype("dtype")) if node.op == "Cast" else node)
    assert set(np.unique(synthetic_feeds(graph, ["y"])["x"]).tolist()) == set(range(5))
    assert verify(graph, graph, outputs=["y"], engine="reference").passed


def test_rows_are_also_those_of_a_variable() -> None:
    graph = parse("""
        x = Placeholder(dtype=int8, shape=[2])
        table = VarHandleOp(dtype=float, shape=[4,3], container="", shared_name="table")
        rows = Cast(x, SrcT=int8, DstT=int32)
        y = ResourceGather(table, rows, Tindices=int32, dtype=float)
    """)
    assert rows_chosen_by(graph, "x") == 4


def test_rows_are_also_those_of_a_table_that_a_function_reads(tmp_path: pathlib.Path) -> None:
    """As in a SavedModel of TensorFlow 2 before it is frozen."""
    (tmp_path / "called.pbtxt").write_text("""
        node { name: "words" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } }
               attr { key: "shape" value { shape { dim { size: 5 } dim { size: 30 } } } } }
        node { name: "y" op: "PartitionedCall" input: "words" attr { key: "f" value { func { name: "embed" } } }
               attr { key: "Tin" value { list { type: DT_INT32 } } }
               attr { key: "Tout" value { list { type: DT_FLOAT } } } }
        library { function {
            signature { name: "embed" input_arg { name: "rows" type: DT_INT32 }
                        output_arg { name: "embedded" type: DT_FLOAT } }
            node_def { name: "table" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
                attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 1 } }
                                                     float_val: [1, 2, 3] } } } }
            node_def { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
                attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
            node_def { name: "read" op: "GatherV2" input: "table:output:0" input: "rows" input: "axis:output:0"
                attr { key: "Tparams" value { type: DT_FLOAT } } attr { key: "Tindices" value { type: DT_INT32 } }
                attr { key: "Taxis" value { type: DT_INT32 } } }
            ret { key: "embedded" value: "read:output:0" } } }
    """)
    graph = load(tmp_path / "called.pbtxt")
    feeds = synthetic_feeds(graph, ["y"])
    assert set(np.unique(feeds["words"]).tolist()) == {0, 1, 2}
    [result] = Session(graph).run(["y"], feeds)
    assert result.shape == (5, 30, 1)


def test_rows_are_also_chosen_where_negative_numbers_count_from_the_end() -> None:
    """As Keras 3 writes its Embedding: floats between -1 and 1 would all choose the first row."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,30])
        table = Const(float [[0.5], [1.5], [2.5]])
        axis = Const(int32 0)
        number = Cast(x, SrcT=float, DstT=int32)
        zero = Const(int32 0)
        count = Const(int32 3)
        is_negative = Less(number, zero, T=int32)
        from_the_end = AddV2(number, count, T=int32)
        rows = SelectV2(is_negative, from_the_end, number, T=int32)
        y = GatherV2(table, rows, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """)
    assert set(np.unique(synthetic_feeds(graph, ["y"])["x"]).tolist()) == {0, 1, 2}
    assert verify(graph, graph, outputs=["y"]).passed


def test_lengths_fit_the_sequences_that_are_made_up_beside() -> None:
    """TensorFlow refuses longer ones, and ones for all that is whole would show one word alone."""
    graph = parse("""
        words = Placeholder(dtype=int32, shape=[?,?])
        lengths = Placeholder(dtype=int64, shape=[?])
        short = Cast(lengths, SrcT=int64, DstT=int32)
        y = ReverseSequence(words, short, T=int32, Tlen=int32, seq_dim=1, batch_dim=0)
    """)
    for seed in range(3):
        assert synthetic_feeds(graph, ["y"], seed)["lengths"].tolist() == [1]
        longer = synthetic_feeds(graph, ["y"], seed, {"words": (40, 6), "lengths": (40,)})["lengths"]
        assert set(longer.tolist()) <= set(range(1, 7))
        assert len(set(longer.tolist())) > 1


@pytest.mark.parametrize(("of_x", "axis"), [("[10,3,4]", 1), ("[3,10,4]", 0), ("[10,7,3]", 2)])
def test_lengths_fit_the_axis_that_is_turned_round_behind_the_input(of_x: str, axis: int) -> None:
    """Not the second axis of each input, of which others may have one element."""
    batch = 1 if axis == 0 else 0
    graph = parse(f"""
        x = Placeholder(dtype=float, shape={of_x})
        other = Placeholder(dtype=float, shape=[10,1])
        n = Placeholder(dtype=int32, shape=[10])
        near = Exp(x, T=float)
        turned = ReverseSequence(near, n, seq_dim={axis}, batch_dim={batch}, T=float, Tlen=int32)
        far = Exp(other, T=float)
    """)
    feeds = synthetic_feeds(graph, ["turned", "far"])
    assert feeds["n"].min() == 1
    assert feeds["n"].max() == 3
    with Session(graph, engine="reference") as session:
        session.run(["turned", "far"], feeds)


def test_numbers_that_meet_again_are_followed_once() -> None:
    """A chain of choices between a value and itself would else be walked in as many ways as it has powers of two."""
    chain = "\n".join(f"s{i + 1} = SelectV2(c, s{i}, s{i}, T=int32)" for i in range(60))
    graph = parse(f"""
        s0 = Placeholder(dtype=int32, shape=[3])
        c = Placeholder(dtype=bool, shape=[3])
        table = Const(float [[0.5], [1.5], [2.5]])
        axis = Const(int32 0)
        {chain}
        y = GatherV2(table, s60, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """)
    assert rows_chosen_by(graph, "s0") == 3


def test_other_floats_are_not_whole() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[4])\nn = Cast(x, SrcT=float, DstT=int32)\ny = Neg(n, T=int32)")
    assert rows_chosen_by(graph, "x") == 0
    assert not float(synthetic_feeds(graph, ["y"])["x"][0]).is_integer()


def test_wider_values_that_the_first_model_refuses_are_left_out() -> None:
    """A model that shows nothing is tried on values of pictures, which are rows of no table."""
    graph = parse(words(5).replace("y = Neg(embedded", "always = Sub(embedded, embedded, T=float)\n    y = Neg(always"))
    assert verify(graph, graph, outputs=["y"]).outputs[0].largest == 0


def test_a_share_of_dropout_without_a_shape_is_a_number_beside_inputs_that_are_known() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2,?])
        keep = Placeholder(dtype=float)
        size = Shape(x, T=float)
        noise = RandomUniform(size, dtype=float, T=int32)
        kept = Add(noise, keep, T=float)
        mask = Floor(kept, T=float)
        scaled = RealDiv(x, keep, T=float)
        y = Mul(scaled, mask, T=float)
    """)
    feeds = synthetic_feeds(graph, ["y"], given={"x": (2, 3)})
    assert feeds["keep"].shape == ()
    assert feeds["keep"] == 1
