"""Large parts are compiled quickly at first, and anew when they have run often."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.formats import save
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.litert import cache, cached_executable, engine, program_building
from pocketgraph.litert.cost_model import TILED_AFTER
from pocketgraph.litert.rewriting import winograd
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.planning import tiered_compilation

FLOAT = DType.named("float")
LAYERS, CHANNELS = 6, 128
WEIGHTS = LAYERS * 3 * 3 * CHANNELS * CHANNELS * 4  # bytes
X = np.random.default_rng(1).standard_normal((1, 14, 14, CHANNELS)).astype(np.float32)
SETUP = """
from pocketgraph.litert import program_building, cached_executable, engine
from pocketgraph.litert.rewriting import winograd
winograd.has_wide_kernels = lambda: True
engine.TILED_LATER_FROM = program_building.PACKED_FROM = cached_executable.PACKED_FROM = 0
import numpy as np
from pocketgraph import Session
"""


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "has_wide_kernels", lambda: True)
    monkeypatch.setattr(engine, "TILED_LATER_FROM", 0)
    monkeypatch.setattr(program_building, "PACKED_FROM", 0)
    monkeypatch.setattr(cached_executable, "PACKED_FROM", 0)


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    """Layers whose weights are all as many, with a branch around the second and the third."""
    random = np.random.default_rng(0)
    nodes = [Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape(X.shape)})]
    source = "x"
    for layer in range(LAYERS):
        weights = random.standard_normal((3, 3, CHANNELS, CHANNELS)).astype(np.float32) / 24
        nodes += [
            const(f"w{layer}", weights),
            Node(f"c{layer}", "Conv2D", [source, f"w{layer}"], {
                "T": FLOAT, "strides": (1, 1, 1, 1), "padding": b"SAME",
            }),
            Node(f"r{layer}", "Relu", [f"c{layer}"], {"T": FLOAT}),
        ]  # fmt: skip
        source = f"r{layer}"
        if layer == 3:
            nodes.append(Node("sum", "AddV2", ["r0", "r3"], {"T": FLOAT}))
            source = "sum"
    nodes.append(Node("y", "Identity", [source], {"T": FLOAT}))
    path = tmp_path / "model.pb"
    save(Graph(nodes), path)
    return path


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    yield tmp_path / "cache"
    check_schedule.finish()


def part(session: Session) -> Any:
    (plan,) = session._calls.plans.values()
    return plan.executables[0]


def run(session: Session) -> Any:
    return session.run(["y"], {"x": X})[0]


def wait_for_tiles(session: Session) -> None:
    ends = time.monotonic() + 60
    while (part(session).next_tier is not None or len(session.checked_parts()) > 1) and time.monotonic() < ends:
        time.sleep(0.02)
    assert part(session).next_tier is None


def plainly(model: pathlib.Path, *without: str) -> Any:
    with Session(model, cache_dir="", without=without) as session:
        return run(session)


def test_first_runs_are_plain_and_tiles_follow(model: pathlib.Path, folder: pathlib.Path) -> None:
    plain, tiled = plainly(model, "winograd_convolutions"), plainly(model, "tiered_compilation")
    with Session(model, engine="reference") as session:
        right = run(session)
    assert np.any(plain != tiled)
    with Session(model, cache_dir=folder) as session:
        for _ in range(TILED_AFTER - 1):
            np.testing.assert_array_equal(run(session), plain)
        assert part(session).next_tier is not None
        run(session)
        wait_for_tiles(session)
        np.testing.assert_array_equal(run(session), tiled)
        np.testing.assert_allclose(tiled, right, rtol=0, atol=2e-5 * np.abs(right).max())
        assert len(session.checked_parts()) == 1
    ends = time.monotonic() + 60
    while len(list(folder.glob("*.tflite"))) > 1 and time.monotonic() < ends:
        time.sleep(0.02)  # the first tier is removed when the second one has taken over
    assert len(list(folder.glob("*.tflite"))) == 1
    assert not list(folder.glob("*.part"))
    with Session(model, cache_dir=folder) as session:
        np.testing.assert_array_equal(run(session), tiled)
        assert part(session).next_tier is None


def test_a_later_process_goes_on_with_the_first_tier(model: pathlib.Path, folder: pathlib.Path) -> None:
    plain, tiled = plainly(model, "winograd_convolutions"), plainly(model, "tiered_compilation")
    with Session(model, cache_dir=folder) as session:
        np.testing.assert_array_equal(run(session), plain)
    with Session(model, cache_dir=folder) as session:
        for _ in range(TILED_AFTER):
            np.testing.assert_array_equal(run(session), plain)
        assert part(session).program is None
        wait_for_tiles(session)
        np.testing.assert_array_equal(run(session), tiled)


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped is not written over there")
def test_nothing_is_made_of_a_file_that_was_written_over(model: pathlib.Path, folder: pathlib.Path) -> None:
    """It would be made of other weights, and be kept for those that were there."""
    content = model.read_bytes()
    with Session(model, cache_dir=folder) as session:
        plain = run(session)
        with open(model, "r+b") as file:
            file.seek(len(content) // 2)
            file.write(bytes(len(content) // 4))
        for _ in range(TILED_AFTER):
            run(session)
        for thread in threading.enumerate():
            if thread.name == "pocketgraph tiers":
                thread.join()
        np.testing.assert_array_equal(run(session), plain)
        assert part(session).next_tier is not None
        with pytest.raises(RunError, match=r"model\.pb was written over after it was read; open it anew"):
            session.run(["r2"], {"x": X})
    model.write_bytes(content)
    with Session(model, cache_dir=folder) as session:
        np.testing.assert_array_equal(run(session), plain)


def test_several_threads_that_do_without_tiles_have_one_tier(
    model: pathlib.Path, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, tiled = plainly(model, "winograd_convolutions"), plainly(model, "tiered_compilation")
    monkeypatch.setattr(winograd, "SEVERAL_SHARE", 0)
    for threads, first, then in ((1, plain, tiled), (2, plain, plain), (1, tiled, tiled), (2, plain, plain)):
        with Session(model, threads=threads, cache_dir=folder) as session:
            np.testing.assert_array_equal(run(session), first)
            assert (part(session).next_tier is not None) == (first is not then)
            for _ in range(TILED_AFTER):
                run(session)
            wait_for_tiles(session)
            np.testing.assert_array_equal(run(session), then)
    assert len(list(folder.glob("*.tflite"))) == 2


@pytest.mark.parametrize("options", [{"without": ["tiered_compilation"]}, {"engine": "litert"}])
def test_without_tiers_tiles_are_there_at_once(
    model: pathlib.Path, folder: pathlib.Path, options: dict[str, Any]
) -> None:
    tiled = plainly(model, "tiered_compilation")
    with Session(model, cache_dir=folder, **options) as session:
        np.testing.assert_array_equal(run(session), tiled)
        assert part(session).next_tier is None
    with Session(model, cache_dir=folder) as session:  # which finds them
        np.testing.assert_array_equal(run(session), tiled)


def test_a_part_with_few_such_weights_is_compiled_once(
    model: pathlib.Path, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "TILED_LATER_FROM", WEIGHTS + 1)
    with Session(model, cache_dir=folder) as session:
        run(session)
        assert part(session).next_tier is None


def test_a_session_that_is_closed_meanwhile_stays_closed(model: pathlib.Path, folder: pathlib.Path) -> None:
    with Session(model, cache_dir=folder) as session:
        run(session)
        executable = part(session)
    assert not tiered_compilation.compile_again(executable, lambda: pytest.fail("nobody wants it"))
    assert not executable.is_open
    assert executable.next_tier is not None


def test_what_was_put_off_of_the_first_tier_does_not_certify_the_second(
    model: pathlib.Path, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)
    waiting: list[Any] = []
    monkeypatch.setattr(check_schedule, "add", lambda compare, microseconds: waiting.append(compare))
    with Session(model, cache_dir=folder) as session:
        for _ in range(TILED_AFTER):
            run(session)
        (of_the_first,) = waiting
        wait_for_tiles(session)
        of_the_first()
        assert not part(session).is_certified
        run(session)
        _, of_the_second = waiting
        of_the_second()
        entry = cache.find(*part(session).kept_as)
        assert entry is not None
        assert cache.certificate(entry.about) == "right"


def test_a_full_disk_leaves_the_first_tier(
    model: pathlib.Path, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = plainly(model, "winograd_convolutions")
    with Session(model, cache_dir=folder) as session:
        for _ in range(TILED_AFTER - 1):
            run(session)

        def full(*arguments: object, **options: object) -> None:
            done.set()

        done = threading.Event()
        monkeypatch.setattr(cache, "store", full)
        run(session)
        assert done.wait(60)
        np.testing.assert_array_equal(run(session), plain)


def test_a_process_may_end_while_tiles_are_made(model: pathlib.Path, folder: pathlib.Path) -> None:
    script = f"""{SETUP}
x = np.zeros({X.shape}, np.float32)
session = Session({str(model)!r}, cache_dir={str(folder)!r})
for _ in range({TILED_AFTER}):
    session.run(["y"], {{"x": x}})
"""
    for _ in range(4):
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        assert not list(folder.glob("*.part"))


def test_a_session_that_nobody_holds_is_gone_at_once(model: pathlib.Path, folder: pathlib.Path) -> None:
    """Its models and its graph take much memory, and Python looks for cycles seldom."""
    session = Session(str(model), threads=2, cache_dir=folder)
    for _ in range(3):
        session.run(["y"], {"x": X})
    executable = part(session)
    assert executable.next_tier is not None
    held = [weakref.ref(each) for each in (executable, executable._runner, session.graph)]
    gc.disable()
    try:
        del session, executable
        check_schedule.finish()
        assert [each() for each in held] == [None, None, None]
    finally:
        gc.enable()
