"""Engines behind one interface: built in, and a package's own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import MissingExtraError, RunError, UsageError
from pocketgraph.exporting.onnx import onnxruntime_engine, tiled_convolutions
from pocketgraph.exporting.onnx import openvino_engine as openvino
from pocketgraph.formats import save
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache
from pocketgraph.litert.rewriting import winograd
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.onnx_runner import OnnxRunner
from pocketgraph.runtime.part_engines import available_engines, engine_choice
from pocketgraph.runtime.part_engines.paired_timing import PairedTimes
from pocketgraph.runtime.part_engines.part_engine import PartRunner
from runtime.part_engines.package_engine import (
    FEEDS,
    GRAPH,
    RANDOM,
    Array,
    assert_right,
    certificates,
    engines_of,
    right,
)


@pytest.mark.usefixtures("checked_at_once")
def test_an_engine_of_a_package_runs_everything(mine: Any, tmp_path: pathlib.Path) -> None:
    for how_often in (1, 2):  # compiled, and from the cache
        with Session(GRAPH, engine="mine", threads=2, cache_dir=tmp_path / "cache") as session:
            assert_right(session)
            assert engines_of(session) == {"mine 1.5"}
            assert [2] * how_often == mine.LOADED
    assert certificates(tmp_path / "cache") == {"mine 1.5": "right"}
    with Session(GRAPH, engine="mine", cache_dir="") as session:  # nothing is kept; the engine reads a temporary file
        assert_right(session)


def test_what_it_says_of_times_and_places(mine: Any, tmp_path: pathlib.Path) -> None:
    with Session(GRAPH, engine="mine", cache_dir=tmp_path) as session:
        assert str(session.plan(["z", "y"])).splitlines()[1].startswith("mine: ")
        trace = session.profile(["z", "y"], FEEDS)
    timed = {node.name: node for node in trace.nodes}
    assert timed["c"].op == "Conv2D"
    assert {node.runs_on for node in trace.nodes} == {"mine"}
    sums = [node.duration_us for node in trace.nodes if node.op == "magic sum"]
    assert timed["c"].duration_us == pytest.approx(3 * sums[0])
    assert any("mine 1.5" in note for note in trace.notes)


@pytest.mark.parametrize(("fault", "message"), [("refuses", "it is too blue"), ("fails", "OSError: no such device")])
def test_an_engine_that_refuses(mine: Any, fault: str, message: str, tmp_path: pathlib.Path) -> None:
    mine.FAULTS.add(fault)
    with (
        Session(GRAPH, engine="mine", cache_dir=tmp_path) as session,
        pytest.raises(
            RunError,
            match=rf"the engine 'mine', which takes what LiteRT's operators can hold, cannot run all of it.*{message}",
        ),
    ):
        session.run("y", FEEDS)
    with Session(GRAPH, cache_dir=tmp_path) as session:  # what LiteRT makes of the same entry is not touched by it
        session.run("y", FEEDS)


def test_a_litert_file_of_others_runs_on_litert_only(mine: Any, tmp_path: pathlib.Path) -> None:
    from pocketgraph import export

    save(GRAPH, tmp_path / "model.pb")
    export(tmp_path / "model.pb", tmp_path / "model.tflite", target="tflite", outputs=["y"])
    with (
        Session(tmp_path / "model.tflite", engine="mine") as session,
        pytest.raises(RunError, match="runs on LiteRT, not on 'mine'"),
    ):
        session.run("y", FEEDS)
    with Session(tmp_path / "model.tflite", engine="auto") as session:
        (y,) = session.run("y", FEEDS)
    np.testing.assert_allclose(y, right()[1], rtol=1e-5, atol=1e-6)


def test_engines_that_are_none(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no engine 'min'") as told:
        Session(GRAPH, engine="min")
    assert "mine" in told.value.hint
    with pytest.raises(UsageError, match="'half' has no version"):
        Session(GRAPH, engine="half")
    with pytest.raises(UsageError, match="'broken' cannot be imported"):
        Session(GRAPH, engine="broken")
    for module, engine, extra in ((openvino, "openvino", "openvino"), (onnxruntime_engine, "onnxruntime", "onnx")):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=f"'{engine}' is not installed") as told_too:
            Session(GRAPH, engine=engine)
        assert f"pocketgraph[{extra}]" in told_too.value.hint


@pytest.mark.usefixtures("checked_at_once")
def test_a_wrong_engine_does_not_answer(mine: Any, tmp_path: pathlib.Path) -> None:
    mine.FAULTS.add("wrong")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with Session(GRAPH, engine="mine", cache_dir=tmp_path / "cache") as session:
            assert_right(session)
            check_schedule.finish()
            assert_right(session)
    assert any("gives other numbers" in str(one.message) for one in told)
    assert certificates(tmp_path / "cache") == {"mine 1.5": "wrong"}
    with Session(GRAPH, engine="mine", cache_dir=tmp_path / "cache") as session, pytest.raises(RunError, match="other"):
        session.run(["z", "y"], FEEDS)
    with Session(GRAPH, cache_dir=tmp_path / "cache") as session:  # LiteRT is as right as before
        assert_right(session)
        assert engines_of(session) == {""}


def test_the_built_in_engines_side_by_side(tmp_path: pathlib.Path) -> None:
    from pocketgraph.graph.endpoint import Endpoint
    from pocketgraph.runtime.certificates.part_reference import PartReference
    from pocketgraph.runtime.part_engines.part_engine import OfferedPart

    fetches = ["z", "y"]
    with Session(GRAPH, cache_dir=tmp_path) as session:
        wanted = session.run(fetches, FEEDS)
        (executable,) = next(iter(session._calls.plans.values())).executables
    entry = cache.find(*executable.kept_as)  # type: ignore[attr-defined]
    assert entry is not None
    names = [name for name, _, _ in entry.about["inputs"]]
    ends = [Endpoint(name.partition(":")[0], 0) for name in names]
    nodes = PartReference(GRAPH, ends, [Endpoint(name, 0) for name in fetches])
    part = OfferedPart(entry, lambda: nodes)
    graph = part.graph()
    assert graph is not None
    assert sorted(node.op for node in graph if node.op == "Placeholder") == ["Placeholder"] * 2
    inputs = [FEEDS[name.partition(":")[0]] for name in names]
    for name in (*available_engines.BUILT_IN, "openvino", "onnxruntime"):
        engine = available_engines.find(name)
        try:
            assert engine.version()
        except MissingExtraError:
            continue
        runner = engine.load(part, 1)
        for given, array in zip(runner.direct([1, 0])(inputs[::-1]), wanted, strict=True):
            np.testing.assert_allclose(given, array, rtol=1e-5, atol=1e-6)
        times = engine.profile(part, 1, inputs)
        runner.close()
        if times is not None and name != "litert":
            assert times
            assert all(each.microseconds >= 0 for each in times)
    for name in ("reference", "onnxruntime", "openvino"):
        assert available_engines.find(name).refuses(OfferedPart(entry)) == "the graph was not read"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("y = LRN(x, T=float, depth_radius=2, bias=0.5, alpha=0.3, beta=0.75)", "a bias that is no whole number"),
        ("y = LRN(x, T=float, depth_radius=2, bias=2.0, alpha=0.3, beta=0.75)", ""),
        ("y = FloorDiv(x, x, T=float)", "a quotient that OpenVINO rounds"),
        ("y = RealDiv(x, x, T=float)", ""),
        ("n = Cast(x, SrcT=float, DstT=int32)\ny = FloorMod(n, n, T=int32)", "divides whole numbers"),
        ("q = RealDiv(x, x, T=float)\ny = Floor(q, T=float)", "rounds or compares the quotient 'q'"),
        ("q = RealDiv(x, x, T=float)\ny = Cast(q, SrcT=float, DstT=int32)", "rounds or compares the quotient 'q'"),
        ("q = Div(x, x, T=float)\na = Mul(q, x, T=float)\ny = Less(a, x, T=float)", "compares the quotient 'q'"),
        ("q = RealDiv(x, x, T=float)\ny = Relu(q, T=float)", ""),
        ("q = RealDiv(x, x, T=float)\na = Softmax(q, T=float)\ny = Floor(a, T=float)", ""),
        ("n = Cast(x, SrcT=float, DstT=int32)\ny = Mul(n, n, T=int32)", "whole numbers beyond 2^24"),
        ("n = Cast(x, SrcT=float, DstT=int32)\nk = Const(int32 [16])\ny = Mul(n, k, T=int32)", ""),
        ("n = Cast(x, SrcT=float, DstT=int32)\nk = Const(int32 [17])\ny = Mul(n, k, T=int32)", "beyond 2^24"),
        ("n = Cast(x, SrcT=float, DstT=int32)\nk = Const(int32 [16777216])\ny = Equal(n, k, T=int32)", "beyond 2^24"),
        (
            "n = Cast(x, SrcT=float, DstT=int64)\na = Const(int32 [3])\ny = Sum(n, a, T=int64, Tidx=int32)",
            "whole numbers beyond 2^24",
        ),
        (
            "b = Greater(x, x, T=float)\nn = Cast(b, SrcT=bool, DstT=int32)\na = Const(int32 [3])\n"
            "y = Sum(n, a, T=int32, Tidx=int32)",
            "",
        ),
        (
            "n = Cast(x, SrcT=float, DstT=int32)\ny = TensorScatterUpdate(x, n, x, T=float, Tindices=int32)",
            "indices that are computed",
        ),
        ("n = Cast(x, SrcT=float, DstT=int32)\ny = GatherNd(x, n, Tparams=float, Tindices=int32)", "are computed"),
        ("n = Const(int32[1,4] 0)\ny = GatherNd(x, n, Tparams=float, Tindices=int32)", ""),
    ],
)
def test_openvino_leaves_what_it_computes_otherwise(line: str, said: str) -> None:
    graph = parse(f"x = Placeholder(dtype=float, shape=[1,2,2,8])\n{line}")
    reference = PartReference(graph, [Endpoint("x", 0)], [Endpoint("y", 0)])
    part: Any = SimpleNamespace(is_eight_bit=False, reference=reference)
    found = openvino.ENGINE.refuses(part)
    assert said in found if said else not found


@pytest.mark.parametrize("lines", ["y = FloorDiv(x, x, T=float)", "q = RealDiv(x, x, T=float)\ny = Floor(q, T=float)"])
def test_openvino_computes_what_it_takes(lines: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    graph = parse(f"x = Placeholder(dtype=float, shape=[1,2,2,8])\n{lines}")
    x = np.arange(31, 63, dtype=np.float32).reshape(1, 2, 2, 8)
    with (
        pytest.raises(RunError, match=r"OpenVINO's 41 / 41|41 // 41 is 0"),
        Session(graph, engine="openvino", cache_dir=tmp_path) as session,
    ):
        session.run("y", {"x": x})


IDS = np.array([[2**24, 2**24 + 1, 3, -(2**24) - 1]], np.int64)
OTHERS = np.array([[2**24 + 1, 2**24 + 1, 3 + 2**32, -(2**24)]], np.int64)


def test_openvino_leaves_wild_numbers_to_the_reference_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = SimpleNamespace(inputs=[], create_infer_request=lambda: None)
    model = SimpleNamespace(get_ops=list)
    core = SimpleNamespace(read_model=lambda source: model, compile_model=lambda *given: compiled)
    monkeypatch.setattr(openvino, "_core", lambda: core)
    part: Any = SimpleNamespace(outputs=[], reference=None, entry=SimpleNamespace(about={"inputs": []}))
    runner = openvino.OpenVinoRunner(b"", 1, part)
    with pytest.raises(RunError, match="whole numbers beyond 1048576"):
        runner.run([IDS, OTHERS])
    runner.exact = lambda inputs: [inputs[0] == inputs[1]]
    assert runner.run([IDS, OTHERS])[0].tolist() == [[False, True, False, False]]
    wild = [np.full((1, 2), number, np.float32) for number in (np.nan, np.inf, 1e30)]
    assert all(runner.refused([IDS % 7, array]).startswith("OpenVINO's rectifiers") for array in wild)
    assert not runner.refused([IDS % 7, np.full((1, 2), 1e15, np.float32)])
    assert not runner.refused([np.full((3, 4), 60000, np.float16), np.zeros((0, 2))])


def test_openvino_is_given_all_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that is never set would be any numbers; one that nothing reads is dropped."""
    port = SimpleNamespace(
        get_names=lambda: {"x"}, get_element_type=lambda: SimpleNamespace(to_dtype=lambda: np.float32)
    )
    compiled = SimpleNamespace(inputs=[port], create_infer_request=lambda: None)
    core = SimpleNamespace(
        read_model=lambda source: SimpleNamespace(get_ops=list), compile_model=lambda *given: compiled
    )
    monkeypatch.setattr(openvino, "_core", lambda: core)
    about = {"inputs": [], "fed": [0, 1]}
    part: Any = SimpleNamespace(outputs=[], reference=None, entry=SimpleNamespace(about=about))
    openvino.OpenVinoRunner(b"", 1, part, names=["dropped", "x"])
    with pytest.raises(RunError, match="takes inputs by other names"):
        openvino.OpenVinoRunner(b"", 1, part, names=["dropped", "y"])


def test_openvino_compares_large_whole_numbers_as_tensorflow(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    graph = parse("""
        a = Placeholder(dtype=int64, shape=[1, 4])
        b = Placeholder(dtype=int64, shape=[1, 4])
        y = Equal(a, b, T=int64)
    """)
    with Session(graph, engine="openvino", cache_dir=tmp_path, check="never") as session:
        assert session.run("y", {"a": IDS, "b": OTHERS})[0].tolist() == [[False, True, False, False]]  # TensorFlow 2.21
        assert session.run("y", {"a": IDS % 7, "b": OTHERS % 7})[0].tolist() == [[False, True, False, False]]


def test_openvino_is_given_the_graph_where_a_result_does_not_depend_on_an_input(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    graph = parse("""
        rows = Const(int32[2,1] 1)
        size = Const(int32 [3])
        like = Placeholder(dtype=float, shape=[3])
        none = ZerosLike(like, T=float)
        x = Placeholder(dtype=float, shape=[2])
        sums = ScatterNd(rows, x, size, T=float, Tindices=int32)
        y = Add(sums, none, T=float)
    """)
    with Session(graph, engine="openvino", cache_dir=tmp_path, check="never") as session:
        fed = {"like": np.zeros(3, np.float32), "x": np.array([1, 2], np.float32)}
        assert session.run("y", fed)[0].tolist() == [0, 3, 0]  # a .tflite file's SCATTER_ND gives 2 in OpenVINO


@pytest.mark.parametrize("op", ["TensorScatterAdd", "TensorScatterSub"])
def test_openvino_is_given_no_file_that_adds_up_at_places(
    op: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    monkeypatch.setattr(openvino, "_has_onnx", lambda: False)
    rows = (
        "x = Placeholder(dtype=float, shape=[3])\nrows = Const(int32[2,1] 1)\nu = Placeholder(dtype=float, shape=[2])"
    )
    fed = {"x": np.zeros(3, np.float32), "u": np.ones(2, np.float32)}
    graph = parse(f"{rows}\ny = {op}(x, rows, u, T=float, Tindices=int32)")
    with (
        Session(graph, engine="openvino", cache_dir=tmp_path) as session,
        pytest.raises(RunError, match="OpenVINO overwrites"),
    ):
        session.run("y", fed)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("line", ["Relu(x, T=float)", "Exp(x, T=float)", "Relu(n, T=float)\nn = Sub(x, x, T=float)"])
def test_openvino_leaves_what_is_not_finite_to_the_reference_engine(
    line: str, wild: float, tmp_path: pathlib.Path
) -> None:
    """Given NaN, OpenVINO's Relu and Exp give 0; TensorFlow 2.21 gives NaN."""
    pytest.importorskip("openvino", reason="openvino is not installed")
    graph = parse(f"x = Placeholder(dtype=float, shape=[1,2,2,8])\ny = {line}")
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 2, 8)
    with (
        Session(graph, engine="openvino", cache_dir=tmp_path, check="never") as session,
        Session(graph, engine="reference") as reference,
    ):
        session.run("y", {"x": x})
        x[0, 1, 0, 3] = wild
        np.testing.assert_allclose(session.run("y", {"x": x})[0], reference.run("y", {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "line",
    [
        'MaxPool(x, T=float, ksize=[1,2,2,1], strides=[1,1,1,1], padding="SAME")',
        "ResizeBilinear(x, twice, T=float)",
        "ArgMax(x, last, T=float, Tidx=int32, output_type=int64)",
        "Max(x, last, T=float, Tidx=int32, keep_dims=false)",
    ],
)
def test_onnxruntime_leaves_what_it_overlooks_to_the_reference_engine(
    line: str, wild: float, tmp_path: pathlib.Path
) -> None:
    """Given NaN, ONNX Runtime's MaxPool gives NaN, its Max another element and its ArgMax the first place; infinities
    reach pixels of ResizeBilinear where TensorFlow 2.21 has numbers."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    constants = "last = Const(int32 3)\ntwice = Const(int32[2] [5, 6])"
    graph = parse(f"x = Placeholder(dtype=float, shape=[1,3,4,8])\n{constants}\ny = {line}")
    x = RANDOM.normal(size=(1, 3, 4, 8)).astype(np.float32)
    with (
        Session(graph, engine="onnxruntime", cache_dir=tmp_path, check="never") as session,
        Session(graph, engine="reference") as reference,
    ):
        session.run("y", {"x": x})
        x[0, ::2, ::3, ::3] = wild
        np.testing.assert_allclose(session.run("y", {"x": x})[0], reference.run("y", {"x": x})[0], rtol=1e-6)


def test_onnxruntime_adds_up_large_whole_numbers_as_tensorflow(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    graph = parse("""
        x = Placeholder(dtype=int64, shape=[2, 4])
        axis = Const(int32 1)
        y = Sum(x, axis, T=int64, Tidx=int32, keep_dims=false)
    """)
    x = np.array([[2, 3, 46341, 1 << 62], [1, 1, 1, 1 << 53]])
    with Session(graph, engine="onnxruntime", cache_dir=tmp_path, check="never") as session:
        assert session.run("y", {"x": x})[0].tolist() == x.sum(axis=1).tolist()  # it adds them up in doubles
        assert session.run("y", {"x": x % 7})[0].tolist() == (x % 7).sum(axis=1).tolist()


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("index", [-1, 4])
def test_engines_take_no_rows_outside_of_a_table(engine: str, index: int, tmp_path: pathlib.Path) -> None:
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    graph = parse("""
        ids = Placeholder(dtype=int64, shape=[1, 2])
        small = Cast(ids, SrcT=int64, DstT=int32)
        table = Const(float[4, 3] 0.5)
        axis = Const(int32 0)
        rows = GatherV2(table, small, axis, Tparams=float, Tindices=int32, Taxis=int32)
        y = Mul(rows, rows, T=float)
    """)
    with Session(graph, engine=engine, cache_dir=tmp_path) as session:
        assert session.run("y", {"ids": np.array([[0, 3]])})[0].tolist() == [[[0.25] * 3] * 2]
        with pytest.raises(RunError, match=rf"= {index} is not in \[0, 4\)"):  # as TensorFlow says
            session.run("y", {"ids": np.array([[0, index]])})


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_engines_compute_in_float32(engine: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2, 64])
        w = Const(float[64, 3] 1.0)
        m = MatMul(x, w, T=float)
        flat = Const(int32[1] [-1])
        y = Reshape(m, flat, T=float, Tshape=int32)
    """)
    x = 1 + RANDOM.random((2, 64), np.float32) / 4096  # bfloat16 has no numbers between 1 and 1.0078
    with Session(graph, engine=engine, cache_dir=tmp_path / "cache") as session:
        (y,) = session.run("y", {"x": x})
        again = session.run("y", {"x": x + 1})
        assert engines_of(session) == {f"{engine} {available_engines.find(engine).version()}"}
    assert y.shape == (6,)
    np.testing.assert_allclose(y, np.repeat(x.sum(1, dtype=np.float64), 3), rtol=1e-6)
    assert not np.shares_memory(y, again[0])
    np.testing.assert_allclose(y, np.repeat(x.sum(1, dtype=np.float64), 3), rtol=1e-6)  # results stay as they are
    shown = np.repeat(x, 2, 0)[::2]  # not as it lies in memory
    x.flags.writeable = False
    with Session(graph, engine=engine, cache_dir=tmp_path / "cache") as session:
        for given in (shown, x, shown, x + 0, x):
            (y,) = session.run("y", {"x": given})
            np.testing.assert_allclose(y, np.repeat(x.sum(1, dtype=np.float64), 3), rtol=1e-6)
    for _ in range(2):  # compiled, and from the cache
        with Session(GRAPH, engine=engine, cache_dir=tmp_path / "cache") as session:
            assert_right(session)
            check_schedule.finish()
            assert_right(session)
            assert engines_of(session) == {f"{engine} {available_engines.find(engine).version()}"}
    assert set(certificates(tmp_path / "cache").values()) == {"right"}


@pytest.mark.parametrize(
    ("without", "strict", "threads", "images", "products"),
    [
        ((), False, 1, 1, 2),
        ((), False, 2, 1, 0),
        ((), False, 2, 3, 2),
        (("winograd_convolutions",), False, 1, 1, 0),
        (("share_constants",), False, 1, 1, 2),
        ((), True, 1, 1, 0),
    ],
)
def test_openvino_is_given_tiles_unless_they_are_switched_off_or_threads_share_one_image(
    without: tuple[str, ...],
    strict: bool,
    threads: int,
    images: int,
    products: int,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    given: list[bytes] = []

    class Runner(PartRunner):
        """ONNX Runtime in OpenVINO's place."""

        def __init__(self, source: bytes, threads: int, outputs: Any, **options: Any) -> None:
            given.append(source)
            self.runner = OnnxRunner(source, threads)

        def run(self, inputs: Any) -> list[Array]:
            return self.runner.numbers(dict(zip(self.runner.inputs, inputs, strict=True)))

    monkeypatch.setattr(openvino, "OpenVinoRunner", Runner)
    monkeypatch.setattr(openvino.OpenVinoEngine, "version", lambda self: "1.0")
    monkeypatch.setattr(winograd, "has_wide_kernels", lambda: True)
    monkeypatch.setattr(tiled_convolutions, "OPENVINO_SHARE", 1000)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[{images}, 8, 8, 32])
        w = Const(float[3, 3, 32, 32] 0.125)
        y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    """)
    x = RANDOM.random((images, 8, 8, 32), np.float32)
    with Session(graph, engine="reference") as session:
        wanted = session.run("y", {"x": x})
    how = {"threads": threads, "without": without, "strict": strict}
    with Session(graph, engine="openvino", cache_dir=tmp_path, **how) as session:  # type: ignore[arg-type]
        np.testing.assert_allclose(session.run("y", {"x": x}), wanted, rtol=3e-5)
    (content,) = given
    assert [node.op_type for node in onnx.load_from_string(content).graph.node].count("MatMul") == products


def test_what_onnx_runtime_does_not_take(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    narrow = parse("""
        x = Placeholder(dtype=half, shape=[2, 4])
        w = Const(half[4, 3] 0.5)
        y = MatMul(x, w, T=half)
    """)
    with Session(narrow, engine="onnxruntime", cache_dir=tmp_path) as session, pytest.raises(RunError, match="16-bit"):
        session.run("y", {"x": np.ones((2, 4), np.float16)})


TWO_LAYERS = """
    a = Placeholder(dtype=float, shape=[1, 6, 6, 4])
    w = Const(float[3, 3, 4, 4] 0.125)
    c = Conv2D(a, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    axis = Const(int32 1)
    p = BETWEEN
    y = Conv2D(p, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
"""


@pytest.mark.parametrize("between", ["CumulativeLogsumexp(c, axis, T=float, Tidx=int32)", "Relu(c, T=float)"])
def test_auto_opens_onnx_runtime_in_a_process_that_has_not_read_the_graph(
    between: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    monkeypatch.setattr(engine_choice, "LARGE_PART", 0)
    monkeypatch.setattr(openvino, "find_spec", lambda name: None)
    monkeypatch.setattr(engine_choice, "times_in_turns", lambda ours, other, threads: PairedTimes(10.0, 0.5, True))
    path = tmp_path / "model.pb"
    save(parse(TWO_LAYERS.replace("BETWEEN", between)), path)
    feeds = {"a": RANDOM.random((1, 6, 6, 4), np.float32)}
    with Session(path, engine="reference") as session:
        (wanted,) = session.run("y", feeds)
    began: list[Callable[[], object]] = []
    monkeypatch.setattr(engine_choice, "started", lambda work, name: began.append(work))
    for is_cached in (False, True):
        with Session(path, engine="auto", cache_dir=tmp_path / "cache") as session:
            for _ in range(2 * engine_choice.RUNS):
                np.testing.assert_allclose(session.run("y", feeds)[0], wanted, rtol=1e-5, atol=1e-6)
            assert bool(began) == is_cached
            while began:
                began.pop()()
            check_schedule.finish()
            assert engines_of(session) == {f"onnxruntime {onnxruntime_engine.ENGINE.version()}"}
            np.testing.assert_allclose(session.run("y", feeds)[0], wanted, rtol=1e-5, atol=1e-6)


def test_a_session_that_asks_for_no_engine_imports_none_of_this(tmp_path: pathlib.Path) -> None:
    save(GRAPH, tmp_path / "model.pb")
    code = """
        import sys
        import numpy as np
        from pocketgraph import Session
        session = Session(sys.argv[1], cache_dir=sys.argv[2])
        feeds = {"a": np.ones((1, 6, 6, 2), "f4"), "b": np.ones((1, 6, 6, 4), "f4")}
        for _ in range(5):
            session.run("y", feeds)
        print([name for name in sys.modules if "part_engines" in name or name == "openvino"])
    """
    for _ in range(2):
        command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "model.pb"), str(tmp_path / "cache")]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="this system does not tell on which processors threads run"
)
def test_threads_of_openvino_are_not_pinned(tmp_path: pathlib.Path) -> None:
    """Several processes would compute on the first processor alone."""
    pytest.importorskip("openvino", reason="openvino is not installed")
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2, 64])
        w = Const(float[64, 64] 1.0)
        y = MatMul(x, w, T=float)
    """)
    whole = os.sched_getaffinity(0)
    with Session(graph, engine="openvino", threads=len(whole), cache_dir=tmp_path) as session:
        for _ in range(3):
            session.run("y", {"x": np.ones((2, 64), np.float32)})
        tasks = [int(path.name) for path in pathlib.Path("/proc/self/task").iterdir()]
        assert {frozenset(os.sched_getaffinity(task)) for task in tasks} == {frozenset(whole)}
