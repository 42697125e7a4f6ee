"""The choice among engines by measuring, on machines that are idle or busy."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import textwrap
import types
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pocketgraph.cli.look.plan import command
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache
from pocketgraph.litert.sizes import microbatches
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.part_engines import available_engines, engine_choice, paired_timing
from pocketgraph.runtime.part_engines.paired_timing import PairedTimes
from runtime.part_engines.package_engine import FEEDS, GRAPH, assert_right, certificates, engines_of


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


@pytest.mark.parametrize(
    ("found", "engine", "said"),
    [
        ([0.80, 0.82, 0.90], "twin", ["mine 1.5: 0.80", "twin 2.0: 0.72"]),
        ([0.82, 0.80, 1.10], "twin", ["mine 1.5: 0.88", "twin 2.0: 0.80"]),
        ([0.80, 0.82, 1.05], "mine", ["mine 1.5: 0.80", "twin 2.0: 0.84"]),
        ([1.01, 1.00, 0.70], "twin", ["mine 1.5: 1.01", "twin 2.0: 0.70"]),
        ([0.80, 0.95], "mine", ["mine 1.5: 0.80", "twin 2.0: 0.95"]),
    ],
)
def test_what_is_close_is_measured_side_by_side(
    found: list[float],
    engine: str,
    said: list[str],
    mine: Any,
    measured: dict[str, float],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(available_engines, "candidates", lambda: {"mine 1.5": mine.Mine(), "twin 2.0": mine.Mine()})
    turns = [PairedTimes(0.01, ratio, True) for ratio in found]
    monkeypatch.setattr(engine_choice, "times_in_turns", lambda first, second, threads: turns.pop(0))
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:
        (part,) = session.plan(["z", "y"], measure=True).parts
    assert part.runs_on == engine
    assert [line.partition(" of LiteRT")[0] for line in part.measured[:2]] == said
    assert not turns


def test_what_is_wrong_is_not_measured_side_by_side(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(available_engines, "candidates", lambda: {"mine 1.5": mine.Mine(), "twin 2.0": mine.Mine()})
    monkeypatch.setattr(cache, "certificate", lambda about, engine="": "wrong" if engine == "mine 1.5" else "right")
    turns = [PairedTimes(0.01, ratio, True) for ratio in (0.80, 0.82, 0.90)]
    monkeypatch.setattr(engine_choice, "times_in_turns", lambda first, second, threads: turns.pop(0))
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:
        (part,) = session.plan(["z", "y"], measure=True).parts
    assert part.runs_on == "twin"
    assert len(turns) == 1


def test_what_was_measured_on_a_busy_machine_is_measured_again(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for ratio, is_steady in ((0.9, False), (0.4, False), (0.6, True), (0.3, False), (0.5, True)):
        found = PairedTimes(0.01, ratio, is_steady)
        monkeypatch.setattr(engine_choice, "times_in_turns", lambda ours, other, threads, found=found: found)
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
    monkeypatch.setattr(engine_choice, "times_in_turns", lambda ours, other, threads: PairedTimes(0.01, 0.9, False))
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
    found = [PairedTimes(0.01, 0.99, False), PairedTimes(0.01, 1.2, False), PairedTimes(0.01, 0.5, True)]
    monkeypatch.setattr(engine_choice, "times_in_turns", lambda ours, other, threads: found.pop(0))
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:
        assert engine_after(session, engine_choice.RUNS) == ""
        assert len(found) == 2
        assert engine_after(session, engine_choice.RUNS * engine_choice.AGAIN) == ""
        assert len(found) == 1
        assert engine_after(session, engine_choice.RUNS * engine_choice.AGAIN**2) == "mine 1.5"
        assert_right(session)


@pytest.mark.usefixtures("only_when_told")
def test_an_engine_that_could_not_be_opened_is_tried_once_more(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    measure = engine_choice._EngineChoice._measured

    def counted(choice: Any, label: str, engine: Any) -> Any:
        tried.append(label)
        return measure(choice, label, engine)

    monkeypatch.setattr(engine_choice._EngineChoice, "_measured", counted)
    mine.FAULTS.add("fails")
    for times in (1, 2, 2):  # a third process takes it for a property of the engine
        with Session(GRAPH, engine="auto", cache_dir=tmp_path / "fails") as session:
            assert engine_after(session, engine_choice.RUNS) == ""
            assert len(tried) == times
            assert "not used, the engine 'mine' does not take it: OSError" in str(session.plan(["z", "y"]))
    with Session(GRAPH, engine="auto", cache_dir=tmp_path / "once") as session:
        assert engine_after(session, engine_choice.RUNS) == ""
    mine.FAULTS.clear()  # there is memory again
    with Session(GRAPH, engine="auto", cache_dir=tmp_path / "once") as session:
        assert engine_after(session, engine_choice.RUNS) == "mine 1.5"
        assert_right(session)


@pytest.mark.usefixtures("only_when_told")
@pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped is not written over there")
@pytest.mark.parametrize("has_read", [True, False])
def test_nothing_is_measured_with_a_file_that_was_written_over(
    has_read: bool, mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = mine.Mine.load

    def load_nodes(engine: Any, part: Any, threads: int) -> Any:
        assert part.reference is not None
        return load(engine, part, threads)

    monkeypatch.setattr(mine.Mine, "load", load_nodes)
    path = tmp_path / "model.pb"
    save(GRAPH, path)
    if not has_read:  # an earlier process compiled it
        with Session(path, engine="auto", cache_dir=tmp_path / "cache") as session:
            assert_right(session)
    with Session(path, engine="auto", cache_dir=tmp_path / "cache") as session:
        for _ in range(engine_choice.RUNS):
            assert_right(session)
        with open(path, "r+b") as file:
            file.write(bytes(path.stat().st_size))
        for _ in range(3):
            with contextlib.suppress(FormatError):  # as the thread that does it then
                check_schedule.finish()
        assert engines_of(session) == {""}
        assert not mine.LOADED
        (part,) = next(iter(session._calls.plans.values())).executables
        assert engine_choice.measurements(part) == {}  # type: ignore[arg-type]
        assert_right(session)


def test_what_fails_because_the_process_ends_is_not_kept(mine: Any, tmp_path: pathlib.Path) -> None:
    code = """
        import sys, threading, time
        from pocketgraph.runtime import Session
        from pocketgraph.runtime.part_engines import available_engines, engine_choice
        from runtime.part_engines.package_engine import FEEDS, GRAPH
        import mine_engine

        began = threading.Event()

        def load(engine, part, threads):
            began.set()
            while threading.main_thread().is_alive():
                time.sleep(0.01)
            raise RuntimeError("can't register atexit after shutdown")

        engine_choice.LARGE_PART = 0
        available_engines.candidates = lambda: {"mine 1.5": mine_engine.ENGINE}
        mine_engine.Mine.load = load
        session = Session(GRAPH, engine="auto", cache_dir=sys.argv[1])
        for _ in range(engine_choice.RUNS + 1):
            session.run(["z", "y"], FEEDS)
        assert began.wait(60)
    """
    search = [str(tmp_path / "site"), *sys.path]
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "cache")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        check=True,
    )
    with Session(GRAPH, cache_dir=tmp_path / "cache") as session:
        session.run(["z", "y"], FEEDS)
        (part,) = next(iter(session._calls.plans.values())).executables
        assert part.program is None  # type: ignore[attr-defined]
        assert engine_choice.measurements(part) == {}  # type: ignore[arg-type]


def test_a_process_whose_main_thread_is_over_measures_while_others_answer(mine: Any, tmp_path: pathlib.Path) -> None:
    code = """
        import sys, threading
        from pocketgraph.runtime import Session
        from pocketgraph.runtime.certificates import check_schedule
        from pocketgraph.runtime.part_engines import available_engines, engine_choice
        from pocketgraph.runtime.part_engines.paired_timing import PairedTimes
        from runtime.part_engines.package_engine import FEEDS, GRAPH
        import mine_engine

        engine_choice.LARGE_PART = 0
        available_engines.candidates = lambda: {"mine 1.5": mine_engine.ENGINE}
        engine_choice.times_in_turns = lambda ours, other, threads: (ours(), other(), PairedTimes(0.01, 0.5, True))[2]

        def serve():
            threading.main_thread().join()
            with Session(GRAPH, engine="auto", cache_dir=sys.argv[1]) as session:
                for _ in range(engine_choice.RUNS + 1):
                    session.run(["z", "y"], FEEDS)
                check_schedule.finish()
                (part,) = next(iter(session._calls.plans.values())).executables
                print(part.engine)

        threading.Thread(target=serve).start()
    """
    search = [str(tmp_path / "site"), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "cache")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "mine 1.5\n"


def test_what_is_described_holds_no_engine(mine: Any, measured: dict[str, float], tmp_path: pathlib.Path) -> None:
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:
        (part,) = session.plan(["z", "y"], measure=True).parts
        assert part.runs_on == "mine"
        assert len(mine.LOADED) == 1  # to be measured, and not once more
        plans = session._calls.plans.values()
        assert not any(each.is_open for plan in plans for each in plan.executables)  # type: ignore[attr-defined]
        assert session.plan(["z", "y"]).parts == (part,)
        assert_right(session)


@pytest.mark.usefixtures("only_when_told")
def test_it_is_not_measured_for_ever(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def never(ours: object, other: object, threads: int) -> PairedTimes:
        tried.append(threads)
        return PairedTimes(0.01, 0.99, False)

    monkeypatch.setattr(engine_choice, "times_in_turns", never)
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
        from pocketgraph.runtime.folder_turns import turn
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
            monkeypatch.setattr(engine_choice, "times_in_turns", lambda *args: pytest.fail("it was measured"))
            assert engine_after(session, engine_choice.RUNS) == "mine 1.5"
            other.stdin.close()
        with engine_choice.turn(str(tmp_path), 0.0) as is_ours:
            assert is_ours


@pytest.mark.usefixtures("only_when_told")
def test_callers_do_not_wait_for_what_is_measured(
    mine: Any, measured: dict[str, float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(GRAPH, engine="auto", cache_dir=tmp_path) as session:

        def while_a_caller_runs(ours: Any, other: Any, threads: int) -> PairedTimes:
            (executable,) = next(iter(session._calls.plans.values())).executables
            with executable._lock:  # type: ignore[attr-defined]
                ours()
                other()
            return PairedTimes(0.01, 0.5, True)

        monkeypatch.setattr(engine_choice, "times_in_turns", while_a_caller_runs)
        assert engine_after(session, engine_choice.RUNS) == "mine 1.5"


class Machine:
    """A clock and two programs, on a machine where threads wait for processors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.here = self.elsewhere = self.computed = 0.0
        self.turn = 0
        clocks = types.SimpleNamespace(perf_counter=lambda: self.now, process_time=lambda: self.computed)
        monkeypatch.setattr(paired_timing, "time", clocks)
        monkeypatch.setattr(paired_timing._OwnClock, "waited", lambda clock: self.here)
        monkeypatch.setattr(paired_timing, "_all_waited", lambda: self.here + self.elsewhere)

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
    found = paired_timing.times_in_turns(machine.program(0.05, waits, [0.5]), machine.program(0.04, waits, [0.5]), 1)
    assert found.is_steady  # with one thread an engine computes in the thread that asks
    assert (found.seconds, found.ratio) == pytest.approx((0.05, 0.8))


def test_what_one_of_several_threads_waits_is_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calling thread waits while another one computes all: the run has taken as long as ever."""
    machine = Machine(monkeypatch)
    found = paired_timing.times_in_turns(machine.program(0.002, [0.048], [0.0]), machine.program(0.04, [0.0], [0.0]), 2)
    assert not found.is_steady
    assert found.seconds == pytest.approx(0.05)


def test_rounds_in_which_other_threads_wait_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    slower = machine.program(0.06, [0.0], [0.0, 0.0, 0.0, 0.0, 0.03])
    found = paired_timing.times_in_turns(slower, machine.program(0.03, [0.0], [0.0]), 2)
    assert found.is_steady
    assert found.ratio == pytest.approx(0.5)
    found = paired_timing.times_in_turns(machine.program(0.06, [0.0], [0.03]), machine.program(0.03, [0.0], [0.0]), 2)
    assert not found.is_steady


@pytest.mark.parametrize(("waits", "turns"), [(0.0, 3), (0.5, 5)])
def test_runs_of_seconds_are_measured_a_few_times(waits: float, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    slower, faster = (machine.program(seconds, [0.0], [waits], seconds) for seconds in (1.2, 1.08))
    found = paired_timing.times_in_turns(slower, faster, 2)
    assert machine.turn == 2 * turns
    assert (found.ratio, found.is_steady) == (pytest.approx(0.9), not waits)


@pytest.mark.parametrize(("threads", "ratio"), [(1, 0.8), (2, 0.8), (2, 1.25)])
def test_neighbours_do_not_decide(threads: int, ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers wait in every round, and runs take by turns one to four times as long as they should."""
    machine = Machine(monkeypatch)
    random = np.random.default_rng(5)

    def disturbed(computed: float) -> Any:
        def run() -> None:
            machine.program(computed * random.uniform(1, 4), [0.0], [0.04], computed * random.uniform(1, 1.05))()

        return run

    found = paired_timing.times_in_turns(disturbed(0.05), disturbed(0.05 * ratio), threads)
    assert not found.is_steady
    assert found.ratio == pytest.approx(ratio, rel=0.06)


def test_rounds_that_differ_are_unsteady_where_no_system_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_timing, "THREAD", "/nowhere")
    assert paired_timing.own_time() > 0
    machine = Machine(monkeypatch)
    times = iter([0.03, 0.05, 0.05] * 100)

    def other() -> None:
        machine.now += next(times)

    assert not paired_timing.times_in_turns(machine.program(0.03, [0.0], [0.0]), other, 2).is_steady


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


@pytest.mark.parametrize(("ratio", "engine"), [(0.5, "mine"), (1.2, "litert")])
def test_a_batch_that_litert_computes_in_parts_is_measured_so(
    ratio: float,
    engine: str,
    mine: Any,
    measured: dict[str, float],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An engine that reads its file runs it for each part, too: the file is for one."""
    monkeypatch.setattr(microbatches, "LEAST_MICROBATCH_BYTES", 0)
    monkeypatch.setattr(microbatches, "MICROBATCH_READS", 1000)
    measured["mine"] = ratio
    graph = parse("""
        a = Placeholder(dtype=float, shape=[4, 6, 6, 2])
        w = Const(float[3, 3, 2, 4] 0.25)
        c = Conv2D(a, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        y = Relu(c, T=float)
    """)
    x = np.random.default_rng(4).standard_normal((4, 6, 6, 2)).astype(np.float32)
    with Session(graph, engine="reference") as session:
        (expected,) = session.run(["y"], {"a": x})
    with Session(graph, engine="mine", threads=2, cache_dir=tmp_path) as session:  # leaves the whole in the cache
        session.run(["y"], {"a": x})
    mine.LOADED.clear()
    with Session(graph, engine="auto", threads=2, cache_dir=tmp_path) as session:
        (found,) = session.run(["y"], {"a": x})
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert "the batch is computed in 4 parts" in str(session.plan(["y"], {"a": x}))
        (part,) = session.plan(["y"], {"a": x}, measure=True).parts  # whose numbers are compared before they count
    assert part.runs_on == engine
    assert any(f"mine 1.5: {ratio:.2f} of LiteRT's time" in line for line in part.measured)
    assert any("4 parts" in line for line in part.measured) == (engine == "litert")
    assert mine.LOADED[:3] == [2, 1, 1]  # the whole has no file; a part by each thread
