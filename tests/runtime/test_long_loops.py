"""Long loops as short ones of many rounds each, and loops that end by a value: TensorFlow 1.15's results
(tools/make_loop_graphs.py), however many rounds are written out at once."""

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.runtime import Session
from pocketgraph.runtime.unrolling import loops
from pocketgraph.runtime.unrolling.partial_unrolling import PartialUnrolling
from recorded_runs import assert_repeats

HERE = pathlib.Path(__file__).parent
LOOPS = sorted(path.stem for path in (HERE / "loops").glob("*.pb"))
IN_CHUNKS = ("first_rounds_differ", "long_lstm", "long_of_any_length", "long_two_ways", "long_raw", "counting_oddly")
RECURRENT = (
    "any_length", "basic_lstm", "block_cell", "functional_gru", "functional_lstm", "functional_two_ways", "keras_gru",
    "keras_lstm", "keras_two_ways", "stacked_time_major", "two_ways",
)  # fmt: skip


@pytest.fixture
def chunked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rounds each chunk has that is written while the test runs."""
    lengths: list[int] = []
    write = PartialUnrolling.in_chunks

    def noting(self: PartialUnrolling, *arguments: Any) -> int:
        done = write(self, *arguments)
        lengths.append(arguments[-1])
        return done

    monkeypatch.setattr(PartialUnrolling, "in_chunks", noting)
    return lengths


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", LOOPS)
def test_equals_tensorflow(name: str, engine: str | None, tmp_path: pathlib.Path) -> None:
    for _ in range(2):  # the second time from the cache
        assert_repeats(HERE / "loops" / f"{name}.pb", engine=engine, cache_dir=tmp_path)


@pytest.mark.parametrize("name", IN_CHUNKS)
def test_long_loops_run_in_chunks(name: str, chunked: list[int], tmp_path: pathlib.Path) -> None:
    assert_repeats(HERE / "loops" / f"{name}.pb", cache_dir=tmp_path)
    assert chunked
    assert all(length > 3 for length in chunked)


@pytest.mark.parametrize("most", [1, 40, 90])
@pytest.mark.parametrize("name", LOOPS)
def test_any_number_of_rounds_at_once(
    name: str, most: int, chunked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(loops, "MOST_IN_CHUNK", most)
    assert_repeats(HERE / "loops" / f"{name}.pb", cache_dir=tmp_path)
    assert chunked or name not in IN_CHUNKS


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_nets_in_chunks_of_two(
    name: str, chunked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(loops, "MOST_IN_CHUNK", 1)
    assert_repeats(HERE / "recurrent" / f"{name}.pb", cache_dir=tmp_path)
    assert set(chunked) == {2}


@pytest.mark.parametrize("name", ["reading_what_was_written", "growing", "branches_in_turn"])
def test_what_cannot_be_done_in_chunks_is_done_otherwise(
    name: str, chunked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(loops, "MOST_IN_CHUNK", 1)
    assert_repeats(HERE / "loops" / f"{name}.pb", cache_dir=tmp_path)
    assert not chunked


def test_a_long_loop_is_a_short_one(tmp_path: pathlib.Path) -> None:
    """What is left for the interpreter is a tenth of the rounds."""
    with Session(HERE / "loops" / "long_lstm.pb", cache_dir=tmp_path) as session:
        trace = session.profile(["rnn/transpose_1:0"], {"x:0": np.zeros((2, 150, 3), np.float32)})
    rounds = [node for node in trace.nodes if node.op == "LoopCond" or node.name.endswith("/less")]
    assert len(rounds) <= 15


def test_shapes_that_do_not_fit_are_told(tmp_path: pathlib.Path) -> None:
    path = HERE / "loops" / "long_lstm.pb"
    with Session(path, cache_dir=tmp_path) as session, pytest.raises(RunError, match="x"):
        session.run(["rnn/transpose_1:0"], {"x:0": np.zeros((2, 150, 4), np.float32)})


def test_one_program_holds_the_whole_loop_when_it_has_to(chunked: list[int], tmp_path: pathlib.Path) -> None:
    assert_repeats(HERE / "loops" / "long_lstm.pb", engine="litert", cache_dir=tmp_path)
    assert not chunked
