"""A quantized program as a GraphDef: TensorFlow's arithmetic on it is that of the codes, and sessions run the codes."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.apps.quantizing import quantize
from pocketgraph.errors import UsageError
from pocketgraph.formats import from_bytes, to_bytes
from pocketgraph.graph import DType, Graph, Node, const, opdefs, parse_ref
from pocketgraph.graph.dtype import HALF
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.lowering import MAY_QUANTIZE
from pocketgraph.quantization.conversion.to_graphdef import inner_operations, to_graphdef
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.quantization.weight_only import with_quantized_weights
from pocketgraph.runtime import Session
from quantize_nets import net, rows, samples, wide_graph

WRITTEN = pathlib.Path(__file__).parents[2] / "fixtures" / "quantized_graph"


def made(**how: object) -> tuple[Graph, ProgramRunner]:
    program, graph = lowered_graph(net(), ["y"])
    outcome = quantize_program(program, lambda: iter(samples()), 24, QuantizationOptions(float_share=0, **how))  # type: ignore[arg-type]
    written = to_graphdef(outcome.converted.program, graph, ["y"])
    return from_bytes(to_bytes(written)), ProgramRunner(outcome.converted.program)


def test_a_session_computes_what_the_litert_file_does() -> None:
    graph, running = made()
    session = Session(graph)
    for sample in samples(8, seed=3):
        assert np.abs(session.run(["y"], {"x": sample[0]})[0] - running.numbers(sample)[0]).max() < 1e-6


def test_the_plain_arithmetic_of_its_ops_is_near_that_of_the_codes() -> None:
    """Without our mark it is an ordinary graph with FakeQuants: what TensorFlow sees."""
    graph, running = made()
    plain = graph.map_nodes(
        lambda node: Node(node.name, node.op, node.inputs, {k: v for k, v in node.attrs.items() if k != MAY_QUANTIZE})
    )
    session = Session(plain)
    apart = [session.run(["y"], {"x": s[0]})[0] - running.numbers(s)[0] for s in samples(8, seed=3)]
    assert np.abs(np.array(apart)).max() < 0.02


def test_weights_are_int8_in_the_file_and_all_results_lie_on_steps() -> None:
    graph, _ = made()
    weights = [node for node in graph if node.name.endswith("/weights")]
    assert len(weights) == 4
    assert {node.attrs["dtype"].name for node in weights} == {"int8"}
    assert sum(node.op == "FakeQuantWithMinMaxVars" for node in graph) >= 8
    program, _ = lowered_graph(net(), ["y"])
    assert graph["y"].op in ("Softmax", "Identity")
    assert len(to_bytes(graph)) < len(model_bytes(program)) * 2  # many small constants, but no float weights


def test_weights_alone_are_expanded_by_the_graph_itself() -> None:
    program, graph = lowered_graph(wide_graph(), ["y"])
    light = with_quantized_weights(program, dynamic=False)
    written = to_graphdef(light, graph, ["y"])
    assert len(to_bytes(written)) < 0.35 * len(to_bytes(graph))
    session, running = Session(written), ProgramRunner(light)
    for sample in rows(5, 1):
        wanted = running(sample)[0]
        assert np.abs(session.run(["y"], {"x": sample[0]})[0] - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_float16_weights_are_cast_by_the_graph_itself() -> None:
    program, graph = lowered_graph(net(), ["y"])
    layers = [operation for operation in program.operations if is_layer(operation)]
    light = with_quantized_weights(program, dynamic=False, weights={}, halves=layers)
    written = from_bytes(to_bytes(to_graphdef(light, graph, ["y"])))
    stored = [node for node in written if node.op == "Const" and node.attrs["dtype"] is HALF]
    assert len(stored) == len(layers)
    assert {node.op for name in stored for node in written.consumers[name.name]} == {"Cast"}
    session, running, exact = Session(written), ProgramRunner(light), ProgramRunner(program)
    for sample in samples(5, seed=3):
        wanted, result = running(sample)[0], session.run(["y"], {"x": sample[0]})[0]
        assert np.abs(result - wanted).max() < 1e-5
        assert 0 < np.abs(result - exact(sample)[0]).max() < 0.01


def test_what_a_node_is_made_of_stays_in_float_and_prescribed_codes_may_be_shared() -> None:
    """Softplus is several operators, whose tensors are no node's; Tanh's codes give way to those of the join."""
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,16])
        h = MatMul(x, a, T=float)
        t = Tanh(h, T=float)
        s = Softplus(h, T=float)
        axis = Const(int32 1)
        j = ConcatV2(t, s, axis, N=2, T=float, Tidx=int32)
        y = MatMul(j, b, T=float)
    """)
    weights = [const(n, rng.normal(size=shape).astype(np.float32)) for n, shape in (("a", (16, 32)), ("b", (64, 4)))]
    program, lowered = lowered_graph(Graph([*graph, *weights]), ["y"])
    given = [[row.reshape(1, 16)] for row in rng.normal(size=(40, 16)).astype(np.float32)]
    inner = inner_operations(program, lowered)
    assert inner
    assert all("s/" in name or name == "s:0" for name in inner)
    outcome = quantize_program(program, lambda: iter(given), 40, QuantizationOptions(float_share=0, keep=inner))
    written = from_bytes(to_bytes(to_graphdef(outcome.converted.program, lowered, ["y"])))
    assert not [node.name for node in written if ":" in node.name]
    running, session = ProgramRunner(outcome.converted.program), Session(written)
    for sample in given[:8]:
        wanted = running.numbers(sample)[0]
        assert np.abs(session.run(["y"], {"x": sample[0]})[0] - wanted).max() < 0.02 * np.abs(wanted).max() + 0.1


def test_wishes_to_be_placed_with_nodes_that_are_no_more_are_dropped() -> None:
    """TensorFlow refuses a graph with such."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,16])
        h = MatMul(x, read, T=float)
        y = Identity(h, T=float, _class=["loc:@h", "loc:@w"])
        read = Identity(w, T=float, _class=["loc:@w"])
    """)
    weights = const("w", np.random.default_rng(0).normal(size=(16, 100)).astype(np.float32))
    program, lowered = lowered_graph(Graph([*graph, weights]), ["y"])
    written = to_graphdef(with_quantized_weights(program, dynamic=False), lowered, ["y"])
    for node in written:
        for place in node.attrs.get("_class", ()):
            assert place.decode().removeprefix("loc:@") in written.nodes


def test_codes_at_the_border_are_refused() -> None:
    with pytest.raises(UsageError, match="a graph has float inputs and outputs"):
        made(io="int8")


@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_tensorflow_computes_the_written_graph_as_we_do(version: str) -> None:
    """Against what TensorFlow 1.15 and 2.21 made of that very file; see fixtures/make_quantized_graph.py."""
    graph, images = graph_file(WRITTEN, "graph"), np.load(WRITTEN / "images.npy")
    with np.load(WRITTEN / f"{version}.npz") as golden:
        wanted = {name.replace("__", "/"): golden[name] for name in golden.files if name != "version"}
    assert len(wanted) > 10
    plain, fast = Session(graph, engine="reference"), Session(graph)
    for index, image in enumerate(images):
        for name, result in zip(wanted, plain.run(list(wanted), {"x": image}), strict=True):
            assert np.abs(result - wanted[name][index]).max() < 1e-5, name
        # the last layer gives floats, and its operand's codes are rounded anew
        assert np.abs(fast.run(["y"], {"x": image})[0] - wanted["y"][index]).max() < 1e-3
    names = [name for name in wanted if name != "y"]
    made = [fast.run(names, {"x": image}) for image in images]
    for name, results in zip(names, zip(*made, strict=True), strict=True):
        low, high = (float(graph[ref].attrs["value"].numpy()) for ref in graph[name].data_inputs[1:])
        steps = np.abs(np.stack(results) - wanted[name]) / (high - low) * 255
        assert steps.max() < 1.01, name  # of two equally near codes the fast engine may take the other one
        assert (steps > 0.01).mean() < 0.01, name


def test_the_graph_that_is_written_has_the_form_that_tensorflow_was_shown() -> None:
    shown = graph_file(WRITTEN, "graph")
    program, graph = lowered_graph(net(), ["y"])
    outcome = quantize_program(program, lambda: iter(samples()), 24, QuantizationOptions(float_share=0))
    written = to_graphdef(outcome.converted.program, graph, ["y"])
    assert {(n.name, n.op, n.inputs) for n in written} == {(n.name, n.op, n.inputs) for n in shown}


def test_inputs_keep_their_order() -> None:
    graph = Graph(
        [
            *parse("""
        first = Placeholder(dtype=float, shape=[1,8])
        second = Placeholder(dtype=float, shape=[1,64])
        b = MatMul(second, w2, T=float)
        a = MatMul(first, w1, T=float)
        y = AddV2(b, a, T=float)
    """),
            const("w1", np.random.default_rng(0).normal(0, 1, (8, 5)).astype(np.float32)),
            const("w2", np.random.default_rng(1).normal(0, 1, (64, 5)).astype(np.float32)),
        ]
    )
    rng = np.random.default_rng(2)
    data = [[rng.normal(0, 1, (1, 8)).astype("f4"), rng.normal(0, 1, (1, 64)).astype("f4")] for _ in range(8)]
    program, known = lowered_graph(graph, ["y"])
    outcome = quantize_program(program, lambda: iter(data), 8, QuantizationOptions(float_share=0))
    written = to_graphdef(outcome.converted.program, known, ["y"])
    assert [node.name for node in written if node.op == "Placeholder"] == ["first", "second"]


def test_steps_of_a_loop_share_their_weights() -> None:
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,64])
        a = MatMul(x, w, T=float)
        b = Tanh(a, T=float)
        c = MatMul(b, v, T=float)
        y = Tanh(c, T=float)
    """)
    weights = rng.normal(0, 0.1, (64, 64)).astype(np.float32)
    program, lowered = lowered_graph(Graph([*graph, const("w", weights), const("v", weights)]), ["y"])
    written = to_graphdef(with_quantized_weights(program, dynamic=False), lowered, ["y"])
    assert sum(node.op == "Const" and node.attrs["dtype"].name == "int8" for node in written) == 1
    sample = rng.normal(size=(1, 64)).astype(np.float32)
    wanted = np.tanh(np.tanh(sample @ weights) @ weights)
    np.testing.assert_allclose(Session(written).run(["y"], {"x": sample})[0], wanted, atol=0.02)


@pytest.mark.parametrize(
    ("first", "size", "kernel", "places"),
    [
        ('Conv2D(x, v, T=float, strides=[1,1,1,1], padding="SAME", data_format="NCHW")', (3, 8, 8), (3, 3), (2, 3)),
        ('Conv3D(x, v, T=float, strides=[1,1,1,1,1], padding="SAME")', (4, 8, 8, 3), (3, 3, 3), (1, 2, 3)),
    ],
)
def test_nodes_that_are_computed_in_pieces_stay_in_float(
    first: str, size: tuple[int, ...], kernel: tuple[int, ...], places: tuple[int, ...]
) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,{",".join(map(str, size))}])
        c = {first}
        r = Relu(c, T=float)
        p = Const(int32[{len(places)}] {list(places)})
        m = Mean(r, p, T=float, Tidx=int32)
        h = MatMul(m, w, T=float)
        a = Relu(h, T=float)
        y = MatMul(a, u, T=float)
    """)
    rng = np.random.default_rng(0)
    weights = {"v": (*kernel, 3, 8), "w": (8, 16), "u": (16, 5)}
    nodes = [const(name, rng.normal(size=shape).astype(np.float32) / 4) for name, shape in weights.items()]
    whole = Graph([*graph, *nodes])
    data = {"x": rng.normal(size=(24, *size)).astype(np.float32)}
    notes: list[str] = []
    found = quantize(whole, data, form="pb", float_share=0, notify=notes.append)
    assert notes == ["'c' stays in float: a graph has no nodes for their codes, which a .tflite file holds"]
    written = from_bytes(found.to_bytes("pb"))
    assert written["c"].op == whole["c"].op
    assert sum(node.op == "Cast" for node in written) == 2  # of the weights in eight bits behind it
    sessions = Session(whole), Session(written)
    wanted, given = (np.array([s.run(["y"], {"x": row[None]})[0] for row in data["x"]]) for s in sessions)
    noise = ((given - wanted) ** 2).sum()
    assert 0 < noise < 1e-3 * (wanted**2).sum()


def test_a_node_with_sums_inside_leaves_layers_around_it_in_eight_bits() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        c = Conv2D(x, v, T=float, strides=[1,1,1,1], padding="SAME")
        r = Relu(c, T=float)
        l = LRN(r, T=float, depth_radius=2, bias=1.0, alpha=0.1, beta=0.75)
        d = Conv2D(l, w, T=float, strides=[1,1,1,1], padding="SAME")
        p = Const(int32[2] [1, 2])
        y = Mean(d, p, T=float, Tidx=int32)
    """)
    rng = np.random.default_rng(0)
    weights = {"v": (3, 3, 3, 8), "w": (3, 3, 8, 5)}
    nodes = [const(name, rng.normal(size=shape).astype(np.float32) / 4) for name, shape in weights.items()]
    whole = Graph([*graph, *nodes])
    data = {"x": rng.normal(size=(24, 8, 8, 3)).astype(np.float32)}
    written = from_bytes(quantize(whole, data, form="pb", float_share=0).to_bytes("pb"))
    assert written["l"].op in ("LRN", "Identity")
    assert sum(node.op == "Cast" for node in written) == 2
    sessions = Session(whole), Session(written)
    wanted, given = (np.array([s.run(["y"], {"x": row[None]})[0] for row in data["x"]]) for s in sessions)
    assert 0 < ((given - wanted) ** 2).sum() < 1e-2 * (wanted**2).sum()


SHAPE = """
    s = Shape(x, T=float, out_type=int32)
    at = Const(int32[1] [0])
    to = Const(int32[1] [1])
    to2 = Const(int32[1] [2])
    to3 = Const(int32[1] [3])
    n = StridedSlice(s, at, to, to, T=int32, Index=int32, shrink_axis_mask=1)
    m = StridedSlice(s, to, to2, to, T=int32, Index=int32, shrink_axis_mask=1)
    k = StridedSlice(s, to2, to3, to, T=int32, Index=int32, shrink_axis_mask=1)
"""
OPEN = {
    "a head of boxes": (
        "[?,8,8,3]", (8, 8, 3), [(3, 8, 8, 3)],
        """
        c = Conv2D(x, v, T=float, strides=[1,1,1,1], padding="SAME")
        rows = Const(int32 64)
        four = Const(int32 8)
        sizes = Pack(n, rows, four, T=int32, N=3)
        y = Reshape(c, sizes, T=float, Tshape=int32)
        """,
        {"v": (3, 3, 3, 8)},
    ),
    "a layer on rows": (
        "[?,?,6]", (5, 6), [(3, 5, 6), (2, 9, 6)],
        """
        flat = Const(int32[2] [-1, 6])
        r = Reshape(x, flat, T=float, Tshape=int32)
        p = MatMul(r, w, T=float)
        units = Const(int32 7)
        sizes = Pack(n, m, units, T=int32, N=3)
        b = Reshape(p, sizes, T=float, Tshape=int32)
        y = Tanh(b, T=float)
        """,
        {"w": (6, 7)},
    ),
    "a transposed convolution": (
        "[?,?,?,3]", (6, 6, 3), [(3, 6, 6, 3), (2, 4, 8, 3)],
        """
        two = Const(int32 2)
        h = Mul(m, two, T=int32)
        w2 = Mul(k, two, T=int32)
        units = Const(int32 4)
        sizes = Pack(n, h, w2, units, T=int32, N=4)
        c = Conv2DBackpropInput(sizes, w, x, T=float, strides=[1,2,2,1], padding="SAME")
        y = Tanh(c, T=float)
        """,
        {"w": (3, 3, 4, 3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(OPEN))
def test_sizes_that_inputs_leave_open_stay_open(name: str) -> None:
    declared, sample, others, layers, weights = OPEN[name]
    rng = np.random.default_rng(0)
    nodes = [const(key, rng.normal(size=shape).astype(np.float32) / 4) for key, shape in weights.items()]
    whole = Graph([*parse(f"x = Placeholder(dtype=float, shape={declared}){SHAPE}{layers}"), *nodes])
    data = {"x": rng.normal(size=(24, *sample)).astype(np.float32)}
    written = from_bytes(quantize(whole, data, form="pb", float_share=0).to_bytes("pb"))
    assert sum(node.op == "Cast" for node in written) == 1
    for size in ((1, *sample), *others):
        feeds = {"x": rng.normal(size=size).astype(np.float32)}
        wanted, given = (Session(graph).run(["y"], feeds)[0] for graph in (whole, written))
        assert given.shape == wanted.shape
        assert 0 < ((given - wanted) ** 2).sum() < 1e-2 * (wanted**2).sum()


def test_a_branch_that_an_open_size_decides_fixes_that_size() -> None:
    """Only the branch that the samples take is quantized, so the file says for which sizes it is."""
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,6])
        {SHAPE}
        most = Const(int32 7)
        short = Less(m, most, T=int32)
        flat = Const(int32[2] [-1, 6])
        r = Reshape(x, flat, T=float, Tshape=int32)
        p = MatMul(r, w, T=float)
        b = Switch(p, short, T=float)
        t = Tanh(b:1, T=float)
        f = Relu(b, T=float)
        y = Merge(f, t, T=float, N=2)
    """)
    whole = Graph([*graph, const("w", rng.normal(size=(6, 7)).astype(np.float32))])
    data = {"x": rng.normal(size=(24, 5, 6)).astype(np.float32)}
    written = from_bytes(quantize(whole, data, form="pb", float_share=0).to_bytes("pb"))
    assert str(written["x"].shape()) == "[?,5,6]"
    feeds = {"x": data["x"][:1]}
    wanted, given = (Session(each).run(["y"], feeds)[0] for each in (whole, written))
    assert 0 < ((given - wanted) ** 2).sum() < 1e-2 * (wanted**2).sum()


@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_a_network_of_sixteen_bits_becomes_a_graph_of_floats(kind: str) -> None:
    """As in its .tflite file; TensorFlow refused a graph in which floats met halves."""
    nodes = parse(f"""
        x = Placeholder(dtype=float, shape=[?,4])
        narrow = Cast(x, SrcT=float, DstT={kind})
        sums = MatMul(narrow, w, T={kind})
        units = Relu(sums, T={kind})
        both = IdentityN(units, sums, T=[{kind},{kind}])
        scores = MatMul(both, v, T={kind})
        shares = Softmax(scores, T={kind})
        y = Cast(shares, SrcT={kind}, DstT=float)
    """)
    dtype = DType.named(kind).numpy
    weights = {name: (np.arange(np.prod(shape)).reshape(shape) % 7 / 4 - 0.75).astype(dtype)
               for name, shape in (("w", (4, 6)), ("v", (6, 3)))}  # fmt: skip
    graph = Graph([*(const(name, values) for name, values in weights.items()), *nodes])
    rng = np.random.default_rng(0)
    for how in ({"mode": "weights"}, {"samples": {"x": rng.normal(size=(40, 4)).astype(np.float32)}}):
        written = from_bytes(quantize(graph, form="pb", outputs=["y"], **how).to_bytes())
        for node in written:
            given = [opdefs.output_dtypes(written[parse_ref(ref).name])[parse_ref(ref).port] for ref in node.inputs]
            assert given == list(opdefs.input_dtypes(node)), node.name
        found = Session(written).run(["y"], {"x": np.float32([[1, -2, 0.5, 1.5]])})[0]
        np.testing.assert_allclose(found, [[0.6162, 0.1105, 0.2734]], atol=0.02)  # TensorFlow 2.21's
