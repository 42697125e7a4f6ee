"""LiteRT's own profile, and whose operation each of its entries is."""

import pathlib

import numpy as np
import pytest

from litert.parts import compiled_part
from pocketgraph.exporting import export
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import engine, host
from pocketgraph.litert.native import attribution, c_library, profiler
from pocketgraph.litert.native.attribution import shared_out
from pocketgraph.litert.native.profiler import Timed
from pocketgraph.litert.program import Operation
from pocketgraph.runtime import Session

NET = (
    "x = Placeholder(dtype=float, shape=[1,64,64,16])\nw = Const(float[3,3,16,32] 0.5)\n"
    'c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")\nr = Relu(c, T=float)\n'
    'p = MaxPool(r, T=float, ksize=list[1,2,2,1], strides=list[1,2,2,1], padding="SAME")\n'
    "a = Const(int32 [1, 2])\ny = Mean(p, a, T=float, Tidx=int32)\ns = Softmax(y, T=float)"
)
X = np.linspace(-1, 1, 64 * 64 * 16, dtype=np.float32).reshape(1, 64, 64, 16)


def operations(*codes: str) -> list[Operation]:
    return [Operation(code, [], [], {}, ()) for code in codes]


def compiled() -> engine.Executable:
    graph = parse(NET)
    return compiled_part(graph, list(graph), ["x:0"], ["s:0"], {"x:0": (FLOAT, X.shape)})


@pytest.mark.skipif(not host.engine_version().startswith(c_library.KNOWN), reason="another version of LiteRT")
def test_the_library_tells_the_times_of_a_whole_run(capfd: pytest.CaptureFixture[str]) -> None:
    executable, longest = compiled(), []
    for _ in range(20):  # in one of which nothing else has the processor while a small operation runs
        found = executable.op_times([X])
        assert found is not None
        times, how = found
        assert "its own profile" in how
        assert [code for _, code, _ in times] == ["CONV_2D", "MAX_POOL_2D", "MEAN", "SOFTMAX"]
        longest.append(max(times, key=lambda each: each[2])[1])
        if longest[-1] == "CONV_2D":
            break
    assert "CONV_2D" in longest  # 9.4 million multiplications
    assert capfd.readouterr() == ("", "")


def test_without_a_known_library_each_operation_is_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_library, "KNOWN", ("0.0.",))
    found = compiled().op_times([X])
    assert found is not None
    times, how = found
    assert "each was timed alone" in how
    assert all(took > 0 for _, _, took in times)


@pytest.mark.parametrize("cells", [attribution.MOST_CELLS, 0])
def test_a_file_whose_operators_are_not_told_apart_says_so(
    cells: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a file with thousands of operators, whose times would stand for one in silence."""
    monkeypatch.setattr(attribution, "MOST_CELLS", cells)
    export(parse(NET), tmp_path / "net.tflite")
    with Session(tmp_path / "net.tflite") as session:
        trace = session.profile(list(session.outputs), {next(iter(session.inputs)): X})
    (note,) = trace.notes
    if cells and host.engine_version().startswith(c_library.KNOWN):
        assert "shares of the run" in note
        assert len(trace.nodes) == 4
    else:
        assert note.startswith("one row stands for all 4 operators")
        assert [node.name for node in trace.nodes] == ["s"]


def test_a_model_that_is_none_has_no_profile(tmp_path: object) -> None:
    path = f"{tmp_path}/broken.tflite"
    with open(path, "wb") as file:
        file.write(b"TFL3" * 100)
    assert profiler.profile(path, 1, [X]) is None


def test_entries_count_for_the_operation_they_are() -> None:
    events = [
        Timed("Convolution (NHWC, F32) IGEMM", None, 10.0),
        Timed("Convolution (NHWC, F32) DWConv", None, 4.0),
        Timed("Fully Connected (NC, F32) GEMM", None, 7.0),
        Timed("Softmax (NC, F32)", None, 1.0),
    ]
    took = shared_out(events, operations("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "RESHAPE", "SOFTMAX"))
    assert took == [10.0, 4.0, 7.0, 0.0, 1.0]


def test_entries_of_the_interpreter_name_their_operation() -> None:
    events = [Timed("Softmax (NC, F32)", None, 2.0), Timed("FLOOR_DIV", 0, 5.0)]
    assert shared_out(events, operations("FLOOR_DIV", "SOFTMAX")) == [5.0, 2.0]


def test_what_is_fused_from_several_counts_for_the_one_before() -> None:
    events = [Timed("Convolution (NHWC, F32) IGEMM", None, 3.0), Timed("Something New", None, 1.0)]
    assert shared_out(events, operations("CONV_2D", "SOFTMAX")) == [4.0, 0.0]


@pytest.mark.parametrize(
    "events",
    [
        [Timed("Something New", None, 9.0), Timed("Softmax (NC, F32)", None, 1.0)],
        [Timed("FLOOR_DIV", 7, 5.0)],
        [Timed("Softmax (NC, F32)", None, 0.0)],
    ],
)
def test_a_profile_of_another_program_is_not_used(events: list[Timed]) -> None:
    assert shared_out(events, operations("CONV_2D", "SOFTMAX")) is None
