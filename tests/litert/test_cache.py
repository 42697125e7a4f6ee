"""The cache on disk: found again, never trusted when damaged, safe for many writers, no nuisance when it cannot be."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest

from litert.parts import WEIGHTS, compiled_part, product
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache, cached_executable, engine
from pocketgraph.litert.running.packed_runner import PackedRunner
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.part_files import part_name
from support import assert_close

FLOAT = DType.named("float")
X = np.linspace(-1, 1, 4 * 64, dtype=np.float32).reshape(4, 64)
EXPECTED = np.maximum(X @ WEIGHTS, 0)


def compiled(folder: pathlib.Path | str, graph: Graph | None = None, key: str = "model") -> engine.Executable:
    graph = graph or product()
    specs = {"x:0": (FLOAT, (4, 64))}
    return compiled_part(graph, list(graph), ["x:0"], ["y:0"], specs, cache_dir=folder, key=key)


def found(folder: pathlib.Path | str, key: str = "model") -> engine.Executable | None:
    return engine.lookup(key, ["x:0"], ["y:0"], {"x:0": (FLOAT, (4, 64))}, cache_dir=folder)


def check(running: engine.Executable | None) -> None:
    assert running is not None
    assert_close(running.run([X])[0], EXPECTED, 1e-5)
    running.close()


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps packed weights even of small segments."""
    monkeypatch.setattr(cached_executable, "PACKED_FROM", 0)


def test_a_segment_is_found_again(tmp_path: pathlib.Path) -> None:
    assert found(tmp_path) is None
    first = compiled(tmp_path)
    assert first.program is not None
    check(first)
    again = found(tmp_path)
    assert again is not None
    assert again.program is None  # from the cache
    assert again.op_times([X]) is None
    check(again)
    check(compiled(tmp_path))


def test_what_makes_a_segment_another_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(compiled(tmp_path))
    assert found(tmp_path, "other model") is None
    specs = {"x:0": (FLOAT, (4, 64))}
    assert engine.lookup("model", ["x:0"], ["p:0"], specs, cache_dir=tmp_path) is None
    assert engine.lookup("model", ["x:0"], ["y:0"], {"x:0": (FLOAT, (5, 64))}, cache_dir=tmp_path) is None
    assert (
        engine.lookup("model", ["x:0"], ["y:0"], {"x:0": (DType.named("int32"), (4, 64))}, cache_dir=tmp_path) is None
    )
    monkeypatch.setattr(cache, "code_version", lambda: "other code")
    assert found(tmp_path) is None
    monkeypatch.undo()
    monkeypatch.setattr(cache, "engine_version", lambda: "0.0.1")
    assert found(tmp_path) is None


@pytest.mark.usefixtures("packed")
def test_packed_weights_are_kept(tmp_path: pathlib.Path) -> None:
    first = compiled(tmp_path)
    assert isinstance(first._runner, PackedRunner)
    check(first)
    (weights,) = tmp_path.glob("*.xnn")
    before = weights.stat()
    again = found(tmp_path)
    assert again is not None
    assert isinstance(again._runner, PackedRunner)
    check(again)
    assert weights.stat().st_mtime_ns == before.st_mtime_ns
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("name", ["*.tflite", "*.xnn", "*.sum", "*.json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone", "grown"])
def test_a_damaged_file_is_not_used(tmp_path: pathlib.Path, name: str, damage: str) -> None:
    check(compiled(tmp_path))
    (path,) = tmp_path.glob(name)
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        flipped = bytes([data[0] ^ 255]) + data[1:]
        changed = {"cut": data[: len(data) // 2], "flipped": flipped, "empty": b"", "grown": data + b"?"}[damage]
        path.unlink()
        path.write_bytes(changed)
    again = found(tmp_path)
    if name in ("*.tflite", "*.json"):
        assert again is None
    else:
        check(again)
    check(compiled(tmp_path))
    check(found(tmp_path))


def test_a_sidecar_that_is_nonsense_is_not_used(tmp_path: pathlib.Path) -> None:
    check(compiled(tmp_path))
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text())
    for nonsense in (
        [],
        {},
        {**record, "inputs": 3},
        {**record, "sources": [["computed", 0], 5]},
        {**record, "fed": "?"},
    ):
        path.write_text(json.dumps(nonsense))
        assert found(tmp_path) is None
        check(compiled(tmp_path))


def test_another_model_file_under_the_same_name_is_not_used(tmp_path: pathlib.Path) -> None:
    check(compiled(tmp_path))
    (path,) = tmp_path.glob("*.tflite")
    content = bytearray(path.read_bytes())
    content[100:108] = b"\xff" * 8
    path.write_bytes(content)
    assert found(tmp_path) is None


WRITER = """
    import sys
    import numpy as np
    from pocketgraph.litert import engine, cached_executable
    sys.path[:0] = [{tests!r}]
    cached_executable.PACKED_FROM = 0
    from litert.test_cache import compiled, X, EXPECTED
    sys.stdin.readline()
    for turn in range(6):
        running = compiled({folder!r}, key=f"model {{turn}}")
        assert np.allclose(running.run([X])[0], EXPECTED, rtol=1e-4)
        running.close()
    print("done")
"""


def test_processes_may_write_at_once(tmp_path: pathlib.Path) -> None:
    tests = str(pathlib.Path(__file__).parents[1])
    program = textwrap.dedent(WRITER.format(tests=tests, folder=str(tmp_path)))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    writers = [subprocess.Popen([sys.executable, "-c", program], text=True, **pipes) for _ in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        out, err = writer.communicate(timeout=300)
        assert (out, err, writer.returncode) == ("done\n", "", 0)
    assert not list(tmp_path.glob("*.part"))
    for turn in range(6):
        check(found(tmp_path, f"model {turn}"))


def test_it_works_without_a_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_warned", [])  # a process is told once, perhaps in a test before this one
    (tmp_path / "file").write_bytes(b"")
    below = tmp_path / "file" / "below"
    check(compiled(""))
    with pytest.warns(RuntimeWarning, match="compiled parts are not kept for the next process: .* cannot be made"):
        check(compiled(below))
    assert found("") is found(below) is None


def test_a_folder_that_cannot_be_written_to_is_left_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check(compiled(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_no_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    running = compiled(tmp_path)
    assert isinstance(running._runner, PlainRunner)
    check(running)
    assert list(tmp_path.iterdir()) == []


def test_without_a_temporary_folder_either(monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    def none(**_: object) -> None:
        raise FileNotFoundError("no temporary directory")

    monkeypatch.setattr(tempfile, "mkstemp", none)
    check(compiled(""))


def test_the_user_directory_is_the_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    from platformdirs import user_cache_dir

    for value in ("/somewhere/else", "", None):
        monkeypatch.setenv("XDG_CACHE_HOME", value) if value is not None else monkeypatch.delenv("XDG_CACHE_HOME")
        assert cache.user_directory() == user_cache_dir("pocketgraph", appauthor=False)


def test_no_key_means_no_cache(tmp_path: pathlib.Path) -> None:
    graph = product()
    specs = {"x:0": (FLOAT, (4, 64))}
    check(compiled_part(graph, list(graph), ["x:0"], ["y:0"], specs, cache_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_least_recently_used_go_first(tmp_path: pathlib.Path) -> None:
    for number in range(3):
        compiled(tmp_path, key=f"model {number}").close()
        for path in tmp_path.glob("*"):
            status = path.stat()
            os.utime(path, (status.st_atime - 100, status.st_mtime - 100))
    check(found(tmp_path, "model 0"))
    size = sum(path.stat().st_size for path in tmp_path.glob("*"))
    cache.trim(str(tmp_path), limit=size - 1)
    assert found(tmp_path, "model 1") is None
    check(found(tmp_path, "model 0"))
    check(found(tmp_path, "model 2"))
    cache.trim(str(tmp_path), limit=0)
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_crashed_writers_are_removed(tmp_path: pathlib.Path) -> None:
    old = tmp_path / f"{'a' * 40}.tflite.123.abcd.part"
    old.write_bytes(b"half")
    os.utime(old, (1, 1))
    young = tmp_path / f"{'b' * 40}.tflite.456.abcd.part"
    young.write_bytes(b"half")
    cache.trim(str(tmp_path))
    assert not old.exists()
    assert young.exists()


def test_other_files_in_the_directory_are_left_alone(tmp_path: pathlib.Path) -> None:
    own = [".profile", "thesis.doc", "thesis-2.doc", "film.mkv.part", "abcd.json", f"{'c' * 41}.json", "digest.json"]
    for name in own:
        (tmp_path / name).write_bytes(b"of the user")
        os.utime(tmp_path / name, (1, 1))
    compiled(tmp_path).close()
    cache.trim(str(tmp_path), limit=0)
    assert sorted(os.listdir(tmp_path)) == sorted(own)


def test_files_of_the_future_stay_no_longer_than_what_was_used_now(tmp_path: pathlib.Path) -> None:
    compiled(tmp_path, key="made before the clock was set back").close()
    later = time.time() + 30 * 86400
    for path in tmp_path.iterdir():
        os.utime(path, (later, later))
    now = tmp_path / f"{'d' * 40}.tflite.123.abcd.part"
    now.write_bytes(b"another machine is writing this")
    compiled(tmp_path, key="now").close()
    assert now.exists()
    cache.trim(str(tmp_path), limit=sum(path.stat().st_size for path in tmp_path.iterdir()) - 1)
    check(found(tmp_path, "now"))
    assert found(tmp_path, "made before the clock was set back") is None


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(
    ("dtype", "line"),
    [
        ("int32", "y = AddV2(x, x, T=int32)"),
        ("uint8", "y = Cast(x, SrcT=uint8, DstT=float)"),
        ("int8", "y = Cast(x, SrcT=int8, DstT=int32)"),
        ("bool", "y = LogicalNot(x)"),
        ("int64", "y = Neg(x, T=int64)"),
        ("float", "y = Greater(x, x, T=float)"),
    ],
)
def test_element_types_of_packed_segments(tmp_path: pathlib.Path, dtype: str, line: str) -> None:
    graph = parse(f"x = Placeholder(dtype={dtype}, shape=[2,2])\n{line}")
    kind = DType.named(dtype)
    x = np.array([[0, 1], [1, 1]]).astype(kind.numpy)
    specs = {"x:0": (kind, (2, 2))}
    first = compiled_part(graph, list(graph), ["x:0"], ["y:0"], specs, cache_dir=tmp_path, key="model")
    again = engine.lookup("model", ["x:0"], ["y:0"], specs, cache_dir=tmp_path)
    assert again is not None
    assert isinstance(again._runner, PlainRunner if dtype == "int64" else PackedRunner)
    functions = {
        "int32": lambda: x + x,
        "uint8": lambda: x.astype("f4"),
        "int8": lambda: x.astype("i4"),
        "bool": lambda: ~x,
        "int64": lambda: -x,
        "float": lambda: x > x,
    }
    expected = functions[dtype]()
    for running in (first, again):
        assert_close(running.run([x])[0], expected)
        running.close()


def test_fetched_constants_are_found_again(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2,3])
        wide = Const(double [0.1, nan, inf])
        s = Shape(x, T=float, out_type=int64)
        y = Neg(x, T=float)
    """)
    specs = {"x:0": (FLOAT, (2, 3))}
    outputs = ["wide:0", "s:0", "y:0"]
    x = np.ones((2, 3), np.float32)
    compiled_part(graph, list(graph), ["x:0"], outputs, specs, cache_dir=tmp_path, key="model").close()
    again = engine.lookup("model", ["x:0"], outputs, specs, cache_dir=tmp_path)
    assert again is not None
    for actual, expected in zip(again.run([x]), [np.array([0.1, np.nan, np.inf]), np.array([2, 3]), -x], strict=True):
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype
        assert actual.flags.writeable


def test_what_another_process_writes_of_a_part_is_not_removed_with_it(tmp_path: pathlib.Path) -> None:
    check(compiled(tmp_path))
    (sidecar,) = tmp_path.glob("*.json")
    for number, stays in ((os.getpid(), True), (999_999_999, False)):
        part = pathlib.Path(part_name(str(sidecar)).replace(f".{os.getpid()}.", f".{number}."))
        part.touch()
        cache.remove(str(tmp_path), sidecar.stem)
        assert [each.name for each in tmp_path.iterdir()] == [part.name] * stays
        part.unlink(missing_ok=True)


@pytest.mark.usefixtures("packed")
def test_packed_weights_that_cannot_be_moved_leave_nothing(tmp_path: pathlib.Path) -> None:
    check(compiled(tmp_path))
    (packed,) = tmp_path.glob("*.xnn")
    packed.unlink()
    packed.mkdir()
    check(found(tmp_path))
    assert not list(tmp_path.glob("*.part"))


def test_a_cache_that_is_emptied_while_a_part_is_written_costs_no_part(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored_and_gone(*arguments: Any, **options: Any) -> cache.CacheEntry | None:
        entry = store(*arguments, **options)
        for path in tmp_path.iterdir():
            path.unlink()
        return entry

    store = cache.store
    monkeypatch.setattr(cache, "store", stored_and_gone)
    check(compiled(tmp_path))
