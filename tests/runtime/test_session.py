"""Sessions: names, feeds, fetches, targets, errors in TensorFlow's words, threads, closing."""

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.errors import MissingKernelError, RunError, UsageError
from pocketgraph.graph import Graph, Versions
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import shapes
from pocketgraph.runtime import Session, StepTrace
from support import in_threads

LINEAR = """
    x = Placeholder(dtype=float, shape=[?,2])
    w = Const(float [[1.0, 2.0], [3.0, 4.0]])
    product = MatMul(x, w, T=float)
    b = Const(float [0.5, -0.5])
    y = BiasAdd(product, b, T=float)
    parts = Split(axis, y, T=float, num_split=2)
    axis = Const(int32 1)
"""
ENGINES = ["reference", None]


@pytest.fixture(params=ENGINES)
def session(request: pytest.FixtureRequest) -> Session:
    return Session(parse(LINEAR), engine=request.param)


X = np.array([[1.0, 1.0], [0.0, 2.0]], np.float32)
Y = X @ np.array([[1, 2], [3, 4]], np.float32) + np.array([0.5, -0.5], np.float32)


def test_names_with_and_without_port_and_nodes(session: Session) -> None:
    for fetch in ("y", "y:0", session.graph["y"]):
        for feed in ("x", "x:0", session.graph["x"]):
            for _ in range(2):
                (y,) = session.run([fetch], {feed: X})
                np.testing.assert_allclose(y, Y)


def test_a_single_name_gives_a_list_of_one(session: Session) -> None:
    result = session.run("y", {"x": X})
    assert isinstance(result, list)
    np.testing.assert_allclose(result[0], Y)


def test_what_goes_in_and_comes_out_is_worked_out_once(session: Session) -> None:
    """`session.run(list(session.outputs), ...)` in a loop finds nothing again."""
    assert session.inputs is session.inputs
    assert session.outputs is session.outputs
    assert session.signatures is session.signatures


def test_shapes_are_worked_out_once_and_not_for_names(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred, infer = [], shapes.infer
    monkeypatch.setattr(shapes, "infer", lambda graph: inferred.append(graph) or infer(graph))
    with Session(parse(LINEAR)) as session:
        assert (list(session.inputs), list(session.outputs)) == (["x"], ["parts", "parts:1"])
        assert "x" in session.inputs
        assert "y" not in session.inputs
        assert session.inputs.get("y") is None
        with pytest.raises(KeyError, match="0 is no tensor here; they go by name: 'x'"):
            session.inputs[0]  # type: ignore[index]
        assert not inferred
        assert (session.inputs["x"].shape, session.outputs["parts:1"].shape) == ((None, 2), (None, 1))
        assert repr(session.outputs) == repr(dict(session.outputs))
        assert inferred == [session.graph]
        assert pickle.loads(pickle.dumps(session.inputs)) == dict(session.inputs)
        with pytest.raises(KeyError, match="z"):
            session.outputs["z"]


def test_further_outputs_have_ports(session: Session) -> None:
    left, right = session.run(["parts", "parts:1"], {"x": X})
    np.testing.assert_allclose(left, Y[:, :1])
    np.testing.assert_allclose(right, Y[:, 1:])


def test_fetches_may_be_doubled_and_are_not_the_same_array(session: Session) -> None:
    first, second = session.run(["y", "y:0"], {"x": X})
    first[:] = 0
    np.testing.assert_allclose(second, Y)


def test_interior_tensors_can_be_fed(session: Session) -> None:
    (y,) = session.run(["y"], {"product": np.zeros((3, 2), np.float32)})  # x is not needed then
    np.testing.assert_allclose(y, [[0.5, -0.5]] * 3)


def test_constants_can_be_fed(session: Session) -> None:
    (y,) = session.run(["y"], {"x": X, "b": np.zeros(2, np.float32)})
    np.testing.assert_allclose(y, Y - [0.5, -0.5])
    (y,) = session.run(["y"], {"x": X})
    np.testing.assert_allclose(y, Y)


def test_only_one_output_of_a_node_can_be_fed(session: Session) -> None:
    left, right = session.run(["parts", "parts:1"], {"x": X, "parts:1": np.array([[7.0]], np.float32)})
    np.testing.assert_allclose(left, Y[:, :1])
    assert right.tolist() == [[7.0]]


def test_a_fed_tensor_can_be_fetched_and_is_a_copy(session: Session) -> None:
    fed = X.copy()
    got, y = session.run(["x", "y"], {"x": fed})
    got[:] = 99
    np.testing.assert_allclose(fed, X)
    np.testing.assert_allclose(y, Y)


def test_results_can_be_changed_without_changing_the_graph(session: Session) -> None:
    for _ in range(2):
        w, b = session.run(["w", "b"], {})
        assert w.tolist() == [[1, 2], [3, 4]]
        w[:] = 0
        b[:] = 0


def test_partial_graphs_run_without_the_rest(session: Session) -> None:
    assert session.run("w")[0].tolist() == [[1, 2], [3, 4]]


def test_plans_are_kept_per_shape(session: Session) -> None:
    for rows in (1, 5, 1, 2, 0):
        x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        (y,) = session.run(["y"], {"x": x})
        np.testing.assert_allclose(y, x @ [[1, 2], [3, 4]] + [0.5, -0.5])


def test_old_plans_are_let_go(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    monkeypatch.setattr("pocketgraph.runtime.planning.call_cache.MOST_PLANS", 3)
    for rows in (1, 2, 3, 4, 5, 1, 5):
        assert session.run(["y"], {"x": np.zeros((rows, 2), np.float32)})[0].shape == (rows, 2)
        assert len(session._calls.plans) <= 3
        assert len(session._calls) <= 3


def test_non_contiguous_feeds(session: Session) -> None:
    wide = np.arange(12, dtype=np.float32).reshape(2, 6)
    (y,) = session.run(["y"], {"x": wide[:, ::3]})
    np.testing.assert_allclose(y, wide[:, ::3] @ np.array([[1, 2], [3, 4]], np.float32) + [0.5, -0.5])


# Feed values


@pytest.mark.parametrize("value", [[[1, 1], [0, 2]], X.astype("f8"), X.astype("i4"), X.tolist(), [tuple(r) for r in X]])
def test_lossless_values_become_the_declared_type(session: Session, value: object) -> None:
    (y,) = session.run(["y"], {"x": value})
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, Y)


@pytest.mark.parametrize(
    ("dtype", "value", "problem"),
    [
        ("int32", [1.5], "float64, the graph wants int32"),
        ("int32", np.array([1.0], "f4"), "float32, the graph wants int32"),
        ("uint8", [300], "do not fit into uint8"),
        ("int32", [1 << 40], "do not fit into int32"),
        ("float", [1j], "complex128, the graph wants float"),
        ("float", ["1"], "the graph wants float; feed the numbers of a text or of a file"),
        ("float", [True], "bool, the graph wants float"),
        ("bool", [2], "int64, the graph wants bool"),
        ("string", [1.0], "the graph wants strings"),
        ("string", np.array([b"a", 3], object), "holds int"),
        ("float", [[1.0], [2.0, 3.0]], "no array"),
        ("float", None, "is None"),
        ("float", object(), "the graph wants float"),
        ("float", {"a": 1}, "is a dict, the graph wants float; pass an array, a list or a number"),
        ("float", (n for n in range(3)), "is a generator, the graph wants float"),
        ("float", np.array([1, 2], object), r"holds objects \(int\), the graph wants float"),
        ("int32", [1 << 70], "do not fit into int32"),
        ("int32", np.array([1 << 31], "u4"), "do not fit into int32"),
        ("uint8", np.array([-1], "i1"), "do not fit into uint8"),
        ("int64", [1 << 63], "do not fit into int64"),
        ("uint64", [-1], "do not fit into uint64"),
        ("half", np.array([1], "u2").view("V2"), "V2, the graph wants half"),
    ],
)
def test_lossy_values_are_refused(dtype: str, value: object, problem: str) -> None:
    session = Session(parse(f"x = Placeholder(dtype={dtype}, shape=[?])\n y = Identity(x, T={dtype})"))
    with pytest.raises(RunError, match=problem) as caught:
        session.run("y", {"x": value})
    assert "'x'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_strings_go_in_as_bytes_or_text_and_come_out_as_bytes() -> None:
    session = Session(parse("x = Placeholder(dtype=string, shape=[?])\n y = Identity(x, T=string)"))
    for value in ([b"a", b"\xff"], np.array([b"a", b"\xff"], object)):
        assert session.run("y", {"x": value})[0].tolist() == [b"a", b"\xff"]
    assert session.run("y", {"x": ["ä"]})[0].tolist() == ["ä".encode()]
    assert session.run("y", {"x": np.array(["ab", "c"])})[0].tolist() == [b"ab", b"c"]
    assert session.run("y", {"x": []})[0].shape == (0,)


@pytest.mark.filterwarnings("error")
def test_integers_for_complex_numbers() -> None:
    session = Session(parse("x = Placeholder(dtype=complex64, shape=[?])\n y = Conj(x, T=complex64)"))
    assert session.run("y", {"x": [1, 2]})[0].tolist() == [1, 2]


def test_a_feed_of_the_wrong_shape(session: Session) -> None:
    for wrong in (np.zeros((2, 3), np.float32), np.zeros(2, np.float32), np.zeros((1, 2, 2), np.float32)):
        with pytest.raises(
            RunError, match=r"Cannot feed value of shape .* for Tensor 'x:0', which has shape \(\?, 2\)"
        ):
            session.run("y", {"x": wrong})


def test_an_empty_shape_of_an_old_graph_means_any_shape() -> None:
    old = parse("x = Placeholder(dtype=float, shape=[])\n y = Identity(x, T=float)")
    assert Session(old).run("y", {"x": [1.0, 2.0]})[0].tolist() == [1, 2]
    new = Graph(old, versions=Versions(producer=27))
    with pytest.raises(RunError, match=r"which has shape \(\)"):
        Session(new).run("y", {"x": [1.0, 2.0]})


# Errors that tools look for


@pytest.mark.parametrize(
    ("fetches", "feeds", "text"),
    [
        (["y"], {}, "You must feed a value for placeholder tensor 'x' with dtype float and shape [?,2]"),
        (["y"], {"x": X, "x:0": X}, 'Endpoint "x:0" fed more than once'),
        (["y"], {"xx": X}, "FeedInputs: unable to find feed output xx; did you mean 'x'"),
        (["y"], {"x:1": X}, "FeedInputs: x:1 should have output index < 1"),
        (["product_"], {"x": X}, "FetchOutputs node product_: not found; did you mean 'product'"),
        (["parts:2"], {"x": X}, "FetchOutputs parts:2: output index too large, must be < 2"),
        (["^y"], {"x": X}, "FetchOutputs node ^y: not found; to run a node without fetching, pass targets=['y']"),
        (["^q"], {"x": X}, "FetchOutputs node ^q: not found; the likely outputs are 'parts'"),
        (["import/y"], {"x": X}, "FetchOutputs node import/y: not found; did you mean 'y'"),
        (["y"], {"x:0x": X}, "FeedInputs: unable to find feed output x:0x; did you mean 'x'?"),
        (["y"], {"image": X}, "FeedInputs: unable to find feed output image; the likely input is 'x'"),
        ({"result": "y"}, {"x": X}, "a list of tensor names is wanted, not a mapping; fetch list(names.values())"),
        ([], {"x": X}, "Must specify at least one target to fetch or execute"),
        ([7], {"x": X}, "named by a string or a Node, not by int"),
        (
            None,
            {"x": X},
            "a list of tensor names is wanted, not NoneType; all that a session gives are list(session.outputs)",
        ),
        (7, {"x": X}, "a list of tensor names is wanted, not int"),
        (b"y", {"x": X}, "named by a string or a Node, not by bytes"),
        ([["y"]], {"x": X}, "named by a string or a Node, not by list"),
        (["y"], [("x", X)], "feeds are a mapping of tensor names to values, not a list"),
        (["y"], {7: X}, "named by a string or a Node, not by int"),
    ],
)
def test_error_texts(session: Session, fetches: Any, feeds: Any, text: str) -> None:
    with pytest.raises(RunError) as caught:
        session.run(fetches, feeds)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_targets_run_without_a_value() -> None:
    graph = parse("v = VariableV2(dtype=float, shape=[])\n one = Const(float 1.0)\n"
                  "init = Assign(v, one, T=float)\n all = NoOp(^init)\n up = AssignAdd(v, one, T=float)\n"
                  "read = Identity(v, T=float)")  # fmt: skip
    session = Session(graph)
    with pytest.raises(RunError, match="Attempting to use uninitialized value v"):
        session.run("read")
    assert session.run([], targets=["all"]) == []
    assert session.run("read")[0] == 1.0
    assert session.run([], targets="up") == []
    assert session.run(["v", "read"])[0] == 2.0
    assert Session(graph).run("init")[0] == 1.0  # each session has its own variables
    with pytest.raises(RunError, match="PruneForTargets: Some target nodes not found: nop other"):
        session.run([], targets=["nop", "all", "other"])
    with pytest.raises(RunError, match=r"Tried to fetch data for 'all:0'.*targets=\['all'\]"):
        session.run("all:0")


@pytest.mark.parametrize("engine", ["reference", None])
def test_an_operation_without_outputs_is_run_and_gives_none(engine: str | None) -> None:
    graph = parse("v = VariableV2(dtype=float, shape=[])\n one = Const(float 1.0)\n"
                  "assign = Assign(v, one, T=float)\n init = NoOp(^assign)\n up = AssignAdd(v, one, T=float)\n"
                  "train = NoOp(^up)\n c = Const(float 3.0)")  # fmt: skip
    with Session(graph, engine=engine) as session:
        assert session.run("init") == [None]
        assert session.run(["train", "c"]) == [None, 3.0]
        assert session.run(["c", "train"]) == [3.0, None]
        assert session.run(["c", "train"]) == [3.0, None]
        assert session.run("v") == [4.0]
        assert session.run(["train", "train"]) == [None, None]
        assert session.run("v") == [5.0]
        assert session.plan(["c", "train"], {})
        with pytest.raises(RunError, match="Tried to fetch data for 'train:0', which produces no output"):
            session.run(["c", "train:0"])


def test_all_missing_kernels_are_listed() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        a = FrobnicateV9(x, T=float)
        b = FrobnicateV9(a, T=float)
        c = Relu7(b, T=float)
        d = Relu(x, T=float)
    """)
    for engine in ENGINES:
        session = Session(graph, engine=engine)
        with pytest.raises(MissingKernelError) as caught:
            session.run("c", {"x": [1.0, 2.0]})
        text = str(caught.value)
        assert "No OpKernel was registered to support Op 'FrobnicateV9' used by 'a', 'b'" in text
        assert "No OpKernel was registered to support Op 'Relu7' used by 'c'" in text
        assert "did you mean 'Relu" in text
        assert "strip_unused_nodes" in text
        assert "\n" not in text
        assert session.run("d", {"x": [1.0, -2.0]})[0].tolist() == [1, 0]  # what does not need them runs


def test_a_failing_node_is_named_with_its_shapes() -> None:
    graph = parse("""
        a = Placeholder(dtype=float, shape=<unknown>)
        b = Placeholder(dtype=float, shape=<unknown>)
        inner/product = MatMul(a, b, T=float)
        y = Identity(inner/product, T=float)
    """)
    for engine in ENGINES:
        with pytest.raises(RunError, match=r"node 'inner/product': MatMul.*\[2, 3\].*\[2, 3\]"):
            Session(graph, engine=engine).run("y", {"a": np.zeros((2, 3), "f4"), "b": np.zeros((2, 3), "f4")})


def test_a_dangling_input_is_named() -> None:
    graph = parse("y = Identity(nothing, T=float)")
    with pytest.raises(RunError, match="node 'y': the input 'nothing' is no node of the graph"):
        Session(graph).run("y")


@pytest.mark.parametrize("op", ["ReadFile", "WriteFile", "PyFunc", "SaveV2", "RestoreV2"])
def test_ops_that_touch_files_or_run_code_are_refused(op: str) -> None:
    graph = parse(f'name = Const(string "/etc/hostname")\n leak = {op}(name)\n safe = Identity(name, T=string)')
    session = Session(graph)
    with pytest.raises(RunError, match=rf"a model may not do unasked: 'leak' \({op}\).*allow="):
        session.run([], targets=["leak"])
    assert session.run("safe")[0] == b"/etc/hostname"
    with pytest.raises(UsageError, match="'everything'"):
        Session(graph, allow=["everything"])


# Life of a session


def test_use_after_close() -> None:
    with Session(parse(LINEAR)) as session:
        session.run("y", {"x": X})
        session.run("y", {"x": X})
    for call in (lambda: session.run("y", {"x": X}), lambda: session.plan("y"), session.__enter__):
        with pytest.raises(RunError, match="closed Session"):
            call()
    session.close()


def test_a_path_is_as_good_as_a_graph(tmp_path: pathlib.Path) -> None:
    from pocketgraph.formats import save

    path = tmp_path / "linear.pb"
    save(parse(LINEAR), path)
    for place in (path, str(path)):
        with Session(place) as session:
            np.testing.assert_allclose(session.run(["y"], {"x": X})[0], Y)
    with pytest.raises(RunError, match=r"nothing\.pb: there is no such file"):
        Session(tmp_path / "nothing.pb")
    with pytest.raises(RunError, match=f"did you mean '{path}'"):
        Session(path.with_name(f"x{path.name}"))


def test_a_warm_start_does_not_read_the_graph(tmp_path: pathlib.Path) -> None:
    from pocketgraph.formats import save

    path, cache = tmp_path / "linear.pb", tmp_path / "cache"
    save(parse(LINEAR), path)
    feeds = {"x": X}
    Session(path, cache_dir=cache, engine="litert").run(["y"], feeds)
    warm = Session(path, cache_dir=cache)
    np.testing.assert_allclose(warm.run(["y:0"], feeds)[0], Y)
    np.testing.assert_allclose(warm.run(["y:0"], feeds)[0], Y)
    assert not warm._plans._source.is_read  # the point of it
    np.testing.assert_allclose(warm.run(["y"], {"x": X.tolist()})[0], Y)  # a list needs the graph to know its type
    with pytest.raises(RunError, match="Cannot feed value of shape"):
        warm.run(["y"], {"x": X[0]})
    save(parse(LINEAR.replace("4.0", "5.0")), path)  # another model under the same name
    np.testing.assert_allclose(Session(path, cache_dir=cache).run(["y"], feeds)[0], np.add(Y, [[0, 1], [0, 2]]))


def test_concurrent_runs() -> None:
    session = Session(parse(LINEAR))
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.normal(size=(rng.integers(1, 4), 2)).astype(np.float32)
            y = session.run(["y"], {"x": x})[0]
            if not np.allclose(y, x @ [[1, 2], [3, 4]] + [0.5, -0.5], atol=1e-5):
                wrong.append((x, y))

    in_threads(work, [(seed,) for seed in range(4)])
    assert not wrong


@pytest.mark.parametrize(("arguments", "problem"), [({"threads": 0}, "at least 1"), ({"engine": "gpu"}, "'gpu'")])
def test_wrong_arguments(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Session(parse(LINEAR), **arguments)  # type: ignore[arg-type]


def test_the_litert_engine_alone_says_what_it_cannot_run() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\n y = Betainc(x, x, x, T=float)\n z = Relu(y, T=float)")
    with pytest.raises(RunError, match=r"LiteRT cannot run all of it: 'y' \(Betainc\)"):
        Session(graph, engine="litert").run("z", {"x": [0.1, 0.2]})


# Node times


def test_a_profile_names_every_node_that_works() -> None:
    session = Session(parse(LINEAR), engine="reference")
    trace = session.profile(["y"], {"x": X})
    assert [(t.name, t.op, t.runs_on) for t in trace.nodes] == [
        ("product", "MatMul", "reference"), ("y", "BiasAdd", "reference"),
    ]  # fmt: skip
    assert trace.nodes[0].output_bytes == 16
    assert trace.nodes[0].outputs == (("float32", (2, 2)),)
    assert 0 <= trace.nodes[0].start_us <= trace.nodes[1].start_us <= trace.total_us
    assert sum(t.duration_us for t in trace.nodes) <= trace.total_us
    assert not trace.notes


def test_a_profile_of_lowered_nodes_shares_the_time_out_and_says_so() -> None:
    session = Session(parse(LINEAR), engine="litert")
    (plain,) = session.run(["y"], {"x": X})
    for _ in range(2):
        trace = StepTrace()
        (y,) = session.run(["y"], {"x": X}, trace=trace)
        np.testing.assert_array_equal(y, plain)
        assert {t.runs_on for t in trace.nodes} == {"litert"}
        assert trace.nodes[0].name == "product"  # the bias is fused into it
        assert trace.nodes[0].op == "MatMul"
        assert trace.nodes[0].output_bytes == 16
        assert 0 < sum(t.duration_us for t in trace.nodes) <= trace.total_us
        assert 0 <= trace.nodes[0].start_us <= trace.total_us  # also in the run whose nodes were timed besides
        assert "its own profile" in trace.notes[0] or "each was timed alone" in trace.notes[0]


def test_nodes_in_loops_are_timed_each_time() -> None:
    graphs = pathlib.Path(__file__).parent / "graphs"
    trace = Session(graph_file(graphs, "nested_loops")).profile("while/Exit_1", {"n": 4})
    names = [t.name for t in trace.nodes]
    assert names.count("while/while/mul") == 6
