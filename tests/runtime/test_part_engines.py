"""Engines behind one interface: built in, a package's own, and the choice among them by measuring."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pocketgraph.cli.look.plan import command
from pocketgraph.errors import MissingExtraError, RunError, UsageError
from pocketgraph.exporting.onnx import openvino_engine as openvino
from pocketgraph.exporting.onnx import part_engine, tiled_convolutions
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache
from pocketgraph.litert.rewriting import winograd
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.onnx_runner import OnnxRunner
from pocketgraph.runtime.part_engines import available_engines, beside_others, engine_choice
from pocketgraph.runtime.part_engines.beside_others import Beside
from pocketgraph.runtime.part_engines.part_engine import PartRunner

Array = np.ndarray[Any, Any]

GRAPH = parse("""
    b = Placeholder(dtype=float, shape=[1, 6, 6, 4])
    a = Placeholder(dtype=float, shape=[1, 6, 6, 2])
    w = Const(float[3, 3, 2, 4] 0.25)
    c = Conv2D(a, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    s = Add(c, b, T=float)
    y = Relu(s, T=float)
    axes = Const(int32[2] [1, 2])
    z = Mean(c, axes, T=float, Tidx=int32)
""")
RANDOM = np.random.default_rng(3)
FEEDS: dict[str, Array] = {
    "a": RANDOM.random((1, 6, 6, 2), np.float32),
    "b": RANDOM.random((1, 6, 6, 4), np.float32) - 2,
}

MODULE = '''
"""An engine of somebody's package: LiteRT's interpreter under another name, and with faults by order."""

import numpy as np

from pocketgraph.runtime.part_engines.part_engine import OperationTime, PartRunner

FAULTS = set()
LOADED = []


class Runner(PartRunner):
    def __init__(self, part, threads):
        from ai_edge_litert.interpreter import Interpreter

        self.interpreter = Interpreter(part.file, num_threads=threads)
        self.interpreter.allocate_tensors()
        self.outputs = part.outputs
        for detail, spec in zip(self.interpreter.get_input_details(), part.inputs):
            assert tuple(detail["shape"]) == spec.shape and detail["dtype"] == spec.dtype

    def run(self, inputs):
        for detail, array in zip(self.interpreter.get_input_details(), inputs):
            self.interpreter.set_tensor(detail["index"], array)
        self.interpreter.invoke()
        found = [self.interpreter.get_tensor(d["index"]) for d in self.interpreter.get_output_details()]
        if "wrong" in FAULTS:
            found = [array + 1 for array in found]
        return [array.reshape(spec.shape) for array, spec in zip(found, self.outputs)]


class Mine:
    name = "mine"

    def version(self):
        return "1.5"

    def refuses(self, part):
        return "it is too blue" if "refuses" in FAULTS else ""

    def load(self, part, threads):
        if "fails" in FAULTS:
            raise OSError("no such device")
        LOADED.append(threads)
        return Runner(part, threads)

    def profile(self, part, threads, inputs):
        return [OperationTime("c", "magic convolution", 3.0), OperationTime("", "magic sum", 1.0)]


ENGINE = Mine()
HALF = object()
'''


@pytest.fixture
def mine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of an installed package that offers two engines, one of which is none."""
    place = tmp_path / "site"
    (place / "mine-1.5.dist-info").mkdir(parents=True)
    (place / "mine-1.5.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.5\n")
    (place / "mine-1.5.dist-info" / "entry_points.txt").write_text(
        "[pocketgraph.engines]\nmine = mine_engine:ENGINE\nhalf = mine_engine:HALF\nbroken = mine_engine:NOTHING\n"
    )
    (place / "mine_engine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "mine_engine", raising=False)
    available_engines.offered.cache_clear()
    import mine_engine  # type: ignore[import-not-found]

    yield mine_engine
    available_engines.offered.cache_clear()
    sys.modules.pop("mine_engine", None)


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    check_schedule.finish()
    yield
    check_schedule.finish()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Every part counts as large, the extras as not installed; what is measured is the ratio under "mine"."""
    times = {"mine": 0.5}
    monkeypatch.setattr(engine_choice, "LARGE_PART", 0)
    for module in (openvino, part_engine):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(engine_choice, "beside", lambda ours, other, threads: Beside(0.01, times["mine"], True))
    return times


def right() -> list[Array]:
    with Session(GRAPH, engine="reference") as session:
        return session.run(["z", "y"], FEEDS)


def assert_right(session: Session) -> None:
    for given, wanted in zip(session.run(["z", "y"], FEEDS), right(), strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)


def engines_of(session: Session) -> set[str]:
    plans = session._calls.plans.values()
    return {executable.engine for plan in plans for executable in plan.executables}  # type: ignore[attr-defined]


def certificates(folder: pathlib.Path) -> dict[str, str]:
    """The verdicts in a cache by the engine, "" for LiteRT."""
    from pocketgraph.litert.cache_integrity import unsealed

    found: dict[str, str] = {}
    for path in folder.glob("*.json"):
        if path.name.startswith("digest"):
            continue
        noted = unsealed(str(path)).get(cache.CERTIFICATE, {})
        found.update({key.partition(" ")[2]: said for key, said in noted.items()})
    return found


@pytest.fixture
def checked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are compared at first use, however much of that earlier tests of this process have done."""
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: True)


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
        pytest.raises(RunError, match=rf"the engine 'mine' cannot run all of it.*{message}"),
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
    for module, engine, extra in ((openvino, "openvino", "openvino"), (part_engine, "onnxruntime", "onnx")):
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


def test_auto_takes_the_faster_engine_when_idle(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_schedule, "BUSY", 0)  # nothing is done before this test says so
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)
    path = tmp_path / "model.pb"
    save(GRAPH, path)
    with Session(path, engine="auto", threads=2, cache_dir=tmp_path / "cache") as session:
        for _ in range(engine_choice.RUNS):
            assert_right(session)
            assert engines_of(session) == {""}
        check_schedule.finish()
        assert engines_of(session) == {"mine 1.5"}
        for _ in range(4):
            assert_right(session)
        check_schedule.finish()
        assert_right(session)
    assert certificates(tmp_path / "cache") == {"": "right", "mine 1.5": "right"}
    began: list[Any] = []
    monkeypatch.setattr(engine_choice.threading.Thread, "start", lambda thread: began.append(thread))  # type: ignore[attr-defined]
    with Session(path, engine="auto", threads=2, cache_dir=tmp_path / "cache") as session:
        after = next(iter(session.plan(["z", "y"]).parts)).measured
        assert after[0] == "mine 1.5: 0.50 of LiteRT's time, measured on this machine"
        while not began:  # as many runs as opening the engine must pay for
            assert engines_of(session) == {""}
            assert_right(session)
        began[0].run()
        assert "mine 1.5" in engines_of(session)
        assert_right(session)
    with Session(path, engine="auto", threads=1, cache_dir=tmp_path / "cache") as session:
        assert "not measured" in str(session.plan(["z", "y"]))  # with other threads that is another question
    with Session(path, threads=2, cache_dir=tmp_path / "cache") as session:  # by default it is LiteRT
        for _ in range(60):
            session.run(["z", "y"], FEEDS)
        assert engines_of(session) == {""}


@pytest.mark.parametrize(
    ("ratio", "fault", "said"),
    [
        (0.98, "", "0.98 of LiteRT's time"),
        (2.0, "", "2.00 of LiteRT's time"),
        (0.5, "wrong", "not used, it gives other numbers than LiteRT"),
        (0.5, "fails", "not used, the engine 'mine' does not take it: OSError"),
    ],
)
def test_auto_stays_with_litert(
    mine: Any, measured: dict[str, float], ratio: float, fault: str, said: str, tmp_path: pathlib.Path
) -> None:
    measured["mine"] = ratio
    mine.FAULTS.add(fault)
    with Session(GRAPH, engine="auto", cache_dir=tmp_path / "cache") as session:
        (part,) = session.plan(["z", "y"], measure=True).parts
        assert part.runs_on == "litert"
        assert said in part.measured[0]
        for _ in range(5):
            assert_right(session)
        assert engines_of(session) == {""}


def test_what_was_measured_on_a_busy_machine_is_measured_again(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for ratio, is_steady in ((0.9, False), (0.4, False), (0.6, True), (0.3, False), (0.5, True)):
        found = Beside(0.01, ratio, is_steady)
        monkeypatch.setattr(engine_choice, "beside", lambda ours, other, threads, found=found: found)
        with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:
            (part,) = session.plan(["z", "y"], measure=True).parts
            said.append(part.measured[0].removeprefix("mine 1.5: ").replace(" of LiteRT's time, measured on", ""))
    assert said == [
        "0.90 this machine while it was busy",
        "0.40 this machine while it was busy",
        "0.60 this machine",
        "0.60 this machine",
        "0.50 this machine",
    ]
    monkeypatch.setattr(engine_choice, "beside", lambda ours, other, threads: Beside(0.01, 0.9, False))
    with Session(GRAPH, engine="auto", cache_dir=tmp_path / "another") as session:
        assert engine_after(session, engine_choice.RUNS) == "mine 1.5"  # it will do for this process
    with Session(GRAPH, engine="auto", cache_dir=tmp_path / "another") as session:
        assert "not measured" in str(session.plan(["z", "y"]))  # of itself it keeps nothing that is doubtful


def engine_after(session: Session, runs: int) -> str:
    """Runs so often, lets what waits for an idle process be done, and says on which engine the part then runs."""
    for _ in range(runs):
        session.run(["z", "y"], FEEDS)
    check_schedule.finish()
    (engine,) = engines_of(session)
    return engine


@pytest.fixture
def only_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured or compared before a test says so."""
    monkeypatch.setattr(check_schedule, "BUSY", 0)
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)


@pytest.mark.usefixtures("only_when_told")
def test_what_a_busy_machine_left_open_is_measured_again_in_the_same_process(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Beside(0.01, 0.99, False), Beside(0.01, 1.2, False), Beside(0.01, 0.5, True)]
    monkeypatch.setattr(engine_choice, "beside", lambda ours, other, threads: found.pop(0))
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:
        assert engine_after(session, engine_choice.RUNS) == ""
        assert len(found) == 2
        assert engine_after(session, engine_choice.RUNS * engine_choice.AGAIN) == ""
        assert len(found) == 1
        assert engine_after(session, engine_choice.RUNS * engine_choice.AGAIN**2) == "mine 1.5"
        assert_right(session)


@pytest.mark.usefixtures("only_when_told")
def test_it_is_not_measured_for_ever(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def never(ours: object, other: object, threads: int) -> Beside:
        tried.append(threads)
        return Beside(0.01, 0.99, False)

    monkeypatch.setattr(engine_choice, "beside", never)
    monkeypatch.setattr(engine_choice, "AGAIN", 1)
    with Session(GRAPH, engine="auto", threads=2, cache_dir=tmp_path) as session:
        for _ in range(engine_choice.TRIES + 3):
            assert engine_after(session, engine_choice.RUNS) == ""
    assert tried == [2] * engine_choice.TRIES


@pytest.mark.usefixtures("only_when_told")
def test_processes_measure_one_after_the_other(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fcntl", reason="this system has no locks of directories")
    monkeypatch.setattr(engine_choice, "AGAIN", 1)
    code = """
        import sys
        from pocketgraph.runtime.part_engines.measuring_turn import turn
        with turn(sys.argv[1], 0.0) as is_ours:
            print(is_ours, flush=True)
            sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session, Session(GRAPH, cache_dir=tmp_path) as unread:
        unread.run(["z", "y"], FEEDS)
        (part,) = next(iter(unread._calls.plans.values())).executables
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == "True\n"
            assert engine_after(session, engine_choice.RUNS) == ""
            assert engine_choice.measurements(part) == {}  # type: ignore[arg-type]
            with engine_choice.turn(str(tmp_path), 0.2) as is_ours:
                assert not is_ours
            # what the other one has found meanwhile is taken over
            key = f"{session.threads} mine 1.5"
            cache.note(*part.kept_as, engine_choice.MEMBER, key, [0.7, 0.01, 0.1, "", True])  # type: ignore[attr-defined]
            monkeypatch.setattr(engine_choice, "beside", lambda *args: pytest.fail("it was measured"))
            assert engine_after(session, engine_choice.RUNS) == "mine 1.5"
            other.stdin.close()
        with engine_choice.turn(str(tmp_path), 0.0) as is_ours:
            assert is_ours


@pytest.mark.usefixtures("only_when_told")
def test_callers_do_not_wait_for_what_is_measured(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:

        def while_a_caller_runs(ours: Any, other: Any, threads: int) -> Beside:
            (executable,) = next(iter(session._calls.plans.values())).executables
            with executable._lock:  # type: ignore[attr-defined]
                ours()
                other()
            return Beside(0.01, 0.5, True)

        monkeypatch.setattr(engine_choice, "beside", while_a_caller_runs)
        assert engine_after(session, engine_choice.RUNS) == "mine 1.5"


class Machine:
    """A clock and two programs, on a machine where threads wait for processors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.here = self.elsewhere = self.computed = 0.0
        self.turn = 0
        clocks = types.SimpleNamespace(perf_counter=lambda: self.now, process_time=lambda: self.computed)
        monkeypatch.setattr(beside_others, "time", clocks)
        monkeypatch.setattr(beside_others._OwnClock, "waited", lambda clock: self.here)
        monkeypatch.setattr(beside_others, "_all_waited", lambda: self.here + self.elsewhere)

    def program(self, seconds: float, here: list[float], elsewhere: list[float], computed: float = 0.0) -> Any:
        """A run of so many seconds, in which this thread and others wait for so long, by turns, and processors compute
        for so long."""

        def run() -> None:
            waits, others = here[self.turn % len(here)], elsewhere[self.turn % len(elsewhere)]
            self.turn += 1
            self.now += seconds + waits
            self.computed += computed
            self.here += waits
            self.elsewhere += others

        return run


def test_what_a_thread_waits_for_a_processor_is_no_time_of_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    waits = [0.15, 0.01, 0.3, 0.02, 0.0, 0.11, 0.4]
    found = beside_others.beside(machine.program(0.05, waits, [0.5]), machine.program(0.04, waits, [0.5]), 1)
    assert found.is_steady  # with one thread an engine computes in the thread that asks
    assert (found.seconds, found.ratio) == pytest.approx((0.05, 0.8))


def test_rounds_in_which_other_threads_wait_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    slower = machine.program(0.06, [0.0], [0.0, 0.0, 0.0, 0.0, 0.03])
    found = beside_others.beside(slower, machine.program(0.03, [0.0], [0.0]), 2)
    assert found.is_steady
    assert found.ratio == pytest.approx(0.5)
    found = beside_others.beside(machine.program(0.06, [0.0], [0.03]), machine.program(0.03, [0.0], [0.0]), 2)
    assert not found.is_steady


@pytest.mark.parametrize(("threads", "ratio"), [(1, 0.8), (2, 0.8), (2, 1.25)])
def test_neighbours_do_not_decide(threads: int, ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers wait in every round, and runs take by turns one to four times as long as they should."""
    machine = Machine(monkeypatch)
    random = np.random.default_rng(5)

    def disturbed(computed: float) -> Any:
        def run() -> None:
            machine.program(computed * random.uniform(1, 4), [0.0], [0.04], computed * random.uniform(1, 1.05))()

        return run

    found = beside_others.beside(disturbed(0.05), disturbed(0.05 * ratio), threads)
    assert not found.is_steady
    assert found.ratio == pytest.approx(ratio, rel=0.06)


def test_rounds_that_differ_are_unsteady_where_no_system_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_others, "THREAD", "/nowhere")
    assert beside_others.own_time() > 0
    machine = Machine(monkeypatch)
    times = iter([0.03, 0.05, 0.05] * 100)

    def other() -> None:
        machine.now += next(times)

    assert not beside_others.beside(machine.program(0.03, [0.0], [0.0]), other, 2).is_steady


def test_plan_tells_which_engine_is_faster(mine: Any, measured: dict[str, float], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pb"
    save(GRAPH, path)
    result = CliRunner().invoke(command, [str(path), "--engine=auto", "--outputs=y"])
    assert result.exit_code == 0, result.output
    assert "mine 1.5: 0.50 of LiteRT's time, measured on this machine" in result.output
    result = CliRunner().invoke(command, [str(path), "--engine=mime"])
    assert isinstance(result.exception, UsageError)
    assert "did you mean 'mine'" in result.exception.hint


def test_a_strict_session_and_eight_bits_stay_with_litert(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path
) -> None:
    with Session(GRAPH, engine="auto", strict=True, cache_dir=tmp_path) as session:
        for _ in range(5):
            session.run("y", FEEDS)
        check_schedule.finish()
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
    ("without", "strict", "products"),
    [((), False, 2), (("winograd_convolutions",), False, 0), (("share_constants",), False, 2), ((), True, 0)],
)
def test_openvino_is_given_tiles_unless_they_are_switched_off(
    without: tuple[str, ...], strict: bool, products: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
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
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 8, 8, 32])
        w = Const(float[3, 3, 32, 32] 0.125)
        y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    """)
    x = RANDOM.random((1, 8, 8, 32), np.float32)
    with Session(graph, engine="reference") as session:
        wanted = session.run("y", {"x": x})
    with Session(graph, engine="openvino", without=without, strict=strict, cache_dir=tmp_path) as session:
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


@pytest.mark.parametrize("between", ["Cumprod(c, axis, T=float, Tidx=int32)", "Relu(c, T=float)"])
def test_auto_opens_onnx_runtime_in_a_process_that_has_not_read_the_graph(
    between: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    monkeypatch.setattr(engine_choice, "LARGE_PART", 0)
    monkeypatch.setattr(openvino, "find_spec", lambda name: None)
    monkeypatch.setattr(engine_choice, "beside", lambda ours, other, threads: Beside(10.0, 0.5, True))
    path = tmp_path / "model.pb"
    save(parse(TWO_LAYERS.replace("BETWEEN", between)), path)
    feeds = {"a": RANDOM.random((1, 6, 6, 4), np.float32)}
    with Session(path, engine="reference") as session:
        (wanted,) = session.run("y", feeds)
    began: list[threading.Thread] = []

    class Late(threading.Thread):
        def start(self) -> None:
            began.append(self)

    monkeypatch.setattr(engine_choice, "threading", types.SimpleNamespace(Thread=Late))
    for is_cached in (False, True):
        with Session(path, engine="auto", cache_dir=tmp_path / "cache") as session:
            for _ in range(2 * engine_choice.RUNS):
                np.testing.assert_allclose(session.run("y", feeds)[0], wanted, rtol=1e-5, atol=1e-6)
            assert bool(began) == is_cached
            while began:
                began.pop().run()
            check_schedule.finish()
            assert engines_of(session) == {f"onnxruntime {part_engine.ENGINE.version()}"}
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
