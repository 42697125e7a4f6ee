"""Large model files are hashed when the process is idle, and copies of them are known from then on."""

from __future__ import annotations

import hashlib
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

from pocketgraph import Session, formats
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache_integrity, digest
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.planning import idle_hashing


def saved(path: pathlib.Path, factor: float) -> pathlib.Path:
    values = np.full(8, factor, np.float32).tolist()
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[8, 8])
        w = Const(float {[values] * 8})
        y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        z = Relu(y, T=float)
    """)
    formats.save(graph, path)
    return path


def first_result(path: pathlib.Path, folder: pathlib.Path) -> float:
    with Session(path, threads=1, cache_dir=folder) as session:
        return float(session.run(["z"], {"x:0": np.ones((8, 8), np.float32)})[0][0, 0])


def test_copies_of_a_file_that_was_hashed_when_idle_find_what_was_compiled(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 1)
    monkeypatch.setattr(check_schedule, "LOOK", 60)
    monkeypatch.setattr(idle_hashing, "GOES_ON", 0.0)
    folder = tmp_path / "cache"
    model = saved(tmp_path / "model.pb", 2)
    check_schedule.finish()
    assert first_result(model, folder) == 16
    (note,) = folder.glob("digest*.json")
    before = cache_integrity.unsealed(str(note))
    assert before["sha256"] is None
    ends = time.monotonic() + 60
    while cache_integrity.unsealed(str(note))["sha256"] is None and time.monotonic() < ends:
        check_schedule.finish()
        time.sleep(0.01)
    after = cache_integrity.unsealed(str(note))
    assert after["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert after["name"] == before["name"]

    content, entries = model.read_bytes(), {path.name for path in folder.glob("*.tflite")}
    assert entries
    model.unlink()
    (tmp_path / "copy.pb").write_bytes(content)
    assert first_result(tmp_path / "copy.pb", folder) == 16
    assert {path.name for path in folder.glob("*.tflite")} == entries
    assert first_result(saved(tmp_path / "other.pb", 3), folder) == 24
    assert len(list(folder.glob("*.tflite"))) == len(entries) + 1


def test_a_process_that_ends_soon_hashes_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 1)
    monkeypatch.setattr(check_schedule, "BUSY", 1e9)  # as on a machine whose processors are others'
    monkeypatch.setattr(check_schedule, "LOOK", 0.001)
    assert first_result(saved(tmp_path / "model.pb", 2), tmp_path / "cache") == 16
    check_schedule.finish()
    (note,) = (tmp_path / "cache").glob("digest*.json")
    assert cache_integrity.unsealed(str(note))["sha256"] is None


@pytest.mark.parametrize("is_named", [False, True])
def test_a_graph_that_was_read_before_its_file_was_replaced_is_not_kept_as_the_new_ones(
    is_named: bool, tmp_path: pathlib.Path
) -> None:
    folder, model = tmp_path / "cache", saved(tmp_path / "model.pb", 2)
    content = model.read_bytes()
    feeds = {"x:0": np.ones((8, 8), np.float32)}
    with Session(model, threads=1, cache_dir=folder) as session:
        if is_named:
            session._plans._source.key()
        else:
            assert session.graph
        saved(tmp_path / "new.pb", 3).replace(model)
        wanted = session.run(["z"], feeds)[0][0, 0]
    assert wanted == (24 if is_named else 16)
    assert first_result(model, folder) == 24
    model.write_bytes(content)
    assert first_result(model, folder) == 16


OVERWRITTEN = """
import pathlib, sys, warnings
import numpy as np
from pocketgraph import Session
from pocketgraph.runtime.certificates import check_schedule
warnings.simplefilter("error")
check_schedule.LOOK, check_schedule.CHECKED_AT_ONCE = 60, 0  # all comparisons wait
check_schedule.CHECKED_SHARE = 0
model, content, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes(), sys.argv[3]
with Session(model, threads=1, cache_dir=folder) as session:
    print(session.run(["z"], {"x:0": np.ones((8, 8), np.float32)})[0][0, 0])
assert check_schedule._waiting
model.write_bytes(content)
check_schedule.finish()
print("ended")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped is not written over there")
@pytest.mark.parametrize("is_cut", [False, True])
def test_what_waits_to_be_compared_is_not_where_the_file_was_written_over(is_cut: bool, tmp_path: pathlib.Path) -> None:
    """Its values would be others, or gone, which ends a process that reads them."""
    model, other = saved(tmp_path / "model.pb", 2), saved(tmp_path / "other.pb", 3)
    if is_cut:
        other.write_bytes(b"")
    command = [sys.executable, "-c", OVERWRITTEN, str(model), str(other), str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["16.0", "ended"], "")
