"""The cache on disk: found again, never trusted when damaged, safe for many writers, no nuisance when it cannot be."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import numpy as np
import pytest

from litert.parts import compiled_part
from pocketgraph import formats
from pocketgraph.graph import DType, Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache, cached_executable, digest, engine, graph_content
from pocketgraph.litert.cache_integrity import sealed_text, unsealed
from pocketgraph.litert.runner import PackedRunner, PlainRunner
from support import assert_close

FLOAT = DType.named("float")
X = np.linspace(-1, 1, 4 * 64, dtype=np.float32).reshape(4, 64)
WEIGHTS = np.random.default_rng(1).random((64, 64), np.float32)
EXPECTED = np.maximum(X @ WEIGHTS, 0)


def product() -> Graph:
    text = """
        x = Placeholder(dtype=float, shape=[4,64])
        p = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        y = Relu(p, T=float)
    """
    return Graph([const("w", WEIGHTS), *parse(text)])


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
    assert "from the cache" in again.describe()
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
        out, err = writer.communicate(timeout=60)
        assert (out, err, writer.returncode) == ("done\n", "", 0)
    assert not list(tmp_path.glob("*.part"))
    for turn in range(6):
        check(found(tmp_path, f"model {turn}"))


def test_it_works_without_a_cache(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in ("", tmp_path / "file" / "below"):
        check(compiled(folder))
        assert found(folder) is None


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
    old = tmp_path / "something.tflite.123.abcd.part"
    old.write_bytes(b"half")
    os.utime(old, (1, 1))
    young = tmp_path / "other.tflite.456.abcd.part"
    young.write_bytes(b"half")
    cache.trim(str(tmp_path))
    assert not old.exists()
    assert young.exists()


def test_a_large_file_is_hashed_while_it_is_made_ready(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LARGE", 1000)
    path, notes = tmp_path / "model.pb", tmp_path / "cache"
    asked: list[int] = []
    for size, seen in ((999, 0), (1000, 1)):
        path = tmp_path / f"{size}.pb"
        path.write_bytes(bytes(size))
        wanted = hashlib.sha256(bytes(size)).hexdigest()
        assert digest.content_name(path, notes, lambda: asked.append(1)) == wanted
        assert len(asked) == seen
    path.write_bytes(b"1" * 1000)  # a path that was seen before is likely to be in the cache
    assert digest.content_name(path, notes, lambda: asked.append(1)) == hashlib.sha256(b"1" * 1000).hexdigest()
    assert len(asked) == 1
    (tmp_path / "2000.pb").write_bytes(bytes(2000))
    with pytest.raises(ZeroDivisionError):
        digest.content_name(tmp_path / "2000.pb", notes, lambda: 1 / 0)


def test_a_digest_is_that_of_the_content_and_remembered(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(b"one")
    notes = tmp_path / "cache"
    assert digest.file_digest(path, notes) == hashlib.sha256(b"one").hexdigest()
    (note,) = notes.glob("digest*.json")
    record = unsealed(str(note))
    note.write_text(sealed_text({key: record[key] for key in ("state", "name")} | {"sha256": "f" * 64}))
    assert digest.file_digest(path, notes) == "f" * 64
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert digest.file_digest(path, notes) == hashlib.sha256(b"two").hexdigest()
    for damaged in (note.read_text().replace(hashlib.sha256(b"two").hexdigest(), "f" * 64), "{"):
        note.write_text(damaged)
        assert digest.file_digest(path, notes) == hashlib.sha256(b"two").hexdigest()
    (tmp_path / "empty").write_bytes(b"")
    assert digest.file_digest(tmp_path / "empty", "") == hashlib.sha256(b"").hexdigest()


def test_the_first_large_file_of_a_size_has_a_name_without_being_hashed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 3)
    hashed: list[str] = []
    really = digest._sha256
    monkeypatch.setattr(digest, "_sha256", lambda path: (hashed.append(pathlib.Path(path).name), really(path))[1])
    notes = tmp_path / "cache"
    content = {"one": b"abc", "other": b"abd", "copy": b"abc", "shorter": b"ab", "longer": b"abcd"}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)

    def named(name: str) -> str:
        return digest.content_name(tmp_path / name, notes)

    first = named("one")
    assert (named("one"), hashed) == (first, [])
    assert named("shorter") == hashlib.sha256(b"ab").hexdigest()
    assert named("longer") not in (first, named("shorter"))
    assert hashed == ["shorter"]
    assert named("other") == hashlib.sha256(b"abd").hexdigest()  # of the same size: both are hashed
    assert hashed == ["shorter", "other", "one"]
    assert named("copy") == first
    assert hashed == ["shorter", "other", "one", "copy"]
    assert (named("one"), named("other")) == (first, hashlib.sha256(b"abd").hexdigest())
    (tmp_path / "one").write_bytes(b"abd")
    assert named("one") == named("other")
    (tmp_path / "one").write_bytes(b"abe")
    assert named("one") == hashlib.sha256(b"abe").hexdigest()
    (tmp_path / "one").write_bytes(b"abc")  # the content that was hashed under another name, which its copy still has
    assert named("one") == first


def test_a_file_hashed_later_keeps_its_name_which_copies_then_have(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 3)
    path, notes = tmp_path / "model.pb", tmp_path / "cache"
    path.write_bytes(b"abc")
    name = digest.content_name(path, notes)
    assert name != digest.file_digest(path, notes) == hashlib.sha256(b"abc").hexdigest()
    assert digest.content_name(path, notes) == name
    path.unlink()
    path.write_bytes(b"abc")  # brought anew, with other times
    os.utime(path, ns=(1, 1))
    assert digest.content_name(path, notes) == name
    path.unlink()
    path.write_bytes(b"abd")
    assert digest.content_name(path, notes) == hashlib.sha256(b"abd").hexdigest()


def test_a_file_that_changed_before_it_was_hashed_shares_no_name(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 3)
    path, notes = tmp_path / "model.pb", tmp_path / "cache"
    path.write_bytes(b"abc")
    name = digest.content_name(path, notes)
    path.write_bytes(b"abd")
    os.utime(path, ns=(1, 1))
    assert digest.content_name(path, notes) != name
    path.write_bytes(b"abc")  # nobody ever hashed what was called so
    os.utime(path, ns=(1, 1))
    assert digest.content_name(path, notes) == hashlib.sha256(b"abc").hexdigest()

    really = digest._sha256

    def exchanged(path: str) -> str:
        found = really(path)
        pathlib.Path(path).write_bytes(b"xyz")
        return found

    path.write_bytes(b"now")
    monkeypatch.setattr(digest, "_sha256", exchanged)
    names = {digest.content_name(path, notes) for _ in range(2)}
    assert len(names) == 2
    assert hashlib.sha256(b"now").hexdigest() not in names


def test_a_copy_that_is_replaced_while_it_is_hashed_gives_its_name_to_nobody(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 3)
    first, second, notes = tmp_path / "first.pb", tmp_path / "second.pb", tmp_path / "cache"
    first.write_bytes(b"abc")
    name = digest.content_name(first, notes)
    second.write_bytes(b"abd")
    really = digest._sha256

    def exchanged(path: str) -> str:
        if path.endswith("first.pb"):
            first.write_bytes(b"abd")
        return really(path)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(digest, "_sha256", exchanged)
        assert digest.content_name(second, notes) != name
    assert digest.content_name(second, notes) == hashlib.sha256(b"abd").hexdigest()


def whole_seconds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has all files the times, inode and device of one moment, which is given and may be changed: a whole second."""
    really, moment = os.fstat, [1_700_000_000]

    def told(number: int) -> os.stat_result:
        found = really(number)
        coarse = SimpleNamespace(**{key: getattr(found, key) for key in dir(found) if key.startswith("st_")})
        coarse.st_ctime_ns = coarse.st_mtime_ns = moment[0] * 10**9
        coarse.st_ino = coarse.st_dev = 1
        return coarse  # type: ignore[return-value]

    monkeypatch.setattr(os, "fstat", told)
    return moment


def test_two_contents_of_one_whole_second_have_two_names(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 3)
    moment, path, notes = whole_seconds(monkeypatch), tmp_path / "model.pb", tmp_path / "cache"
    large = bytes(1 << 16)
    moment[0] = int(time.time())
    for content in (b"abc", b"abd", large, large[:12345] + b"1" + large[12346:]):
        path.write_bytes(content)
        for _ in range(2):
            assert digest.content_name(path, notes) == hashlib.sha256(content).hexdigest()
    assert not [*notes.glob("digest*")]


def test_a_file_of_an_image_whose_files_have_one_time_is_named_by_its_content(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 3)
    whole_seconds(monkeypatch)
    path, notes = tmp_path / "model.pb", tmp_path / "cache"
    for content in (bytes(1 << 16), bytes([1]) * (1 << 16)):
        path.write_bytes(content)
        assert digest.content_name(path, notes) == hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(digest, "_sha256", lambda path: 1 / 0)  # it is remembered
    assert digest.content_name(path, notes) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("folder", ["cache", ""])
def test_a_file_whose_name_is_no_text_has_a_name_too(
    folder: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, notes = os.path.join(os.fsencode(tmp_path), b"model-\xff.pb"), tmp_path / folder if folder else ""
    with open(path, "wb") as file:
        file.write(b"abc")
    assert digest.file_digest(os.fsdecode(path), notes) == hashlib.sha256(b"abc").hexdigest()
    monkeypatch.setattr(digest, "LATER_FROM", 4)
    with open(path, "ab") as file:
        file.write(b"d")
    name = digest.content_name(os.fsdecode(path), notes)
    assert digest.content_name(os.fsdecode(path), notes) == name


def test_equal_graphs_have_equal_digests_and_others_not() -> None:
    assert graph_content.graph_digest(product()) == graph_content.graph_digest(product())
    base = product()
    seen = {graph_content.graph_digest(base)}
    changed = WEIGHTS.copy()
    changed[63, 63] += 1
    for other in (
        Graph([const("w", changed), *list(base)[1:]]),
        Graph([const("w", WEIGHTS.astype(np.float64)), *list(base)[1:]]),
        base.map_nodes(lambda node: node.replace(name="z") if node.name == "y" else node),
        base.map_nodes(lambda node: node.replace(op="Elu") if node.name == "y" else node),
        base.map_nodes(lambda node: node.with_attrs(transpose_a=True) if node.name == "p" else node),
        base.map_nodes(lambda node: node.replace(inputs=["x"]) if node.name == "y" else node),
        Graph(list(base)[:-1]),
    ):
        seen.add(graph_content.graph_digest(other))
    assert len(seen) == 8


def test_a_loaded_graph_is_known_by_its_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pb"
    formats.save(product(), path)
    loaded = formats.load(path)
    first = graph_content.graph_digest(loaded, tmp_path / "notes")
    assert len(list((tmp_path / "notes").iterdir())) == 1, "the file was read instead of looked up by its name"
    assert graph_content.graph_digest(formats.load(path), "") == first
    assert graph_content.graph_digest(loaded.replace(list(loaded)[:-1]), "") != first
    changed = loaded.map_nodes(lambda node: node.replace(op="Elu") if node.name == "y" else node)
    assert graph_content.graph_digest(changed, "") != first
    held = formats.load(path)
    other = Graph([const("w", WEIGHTS + 1), *list(product())[1:]])
    formats.save(other, path)
    assert graph_content.graph_digest(held, "") == first
    assert graph_content.graph_digest(formats.load(path), "") != first


def test_a_loaded_graph_is_not_named_as_a_file_that_differs_from_its_own_in_one_number(tmp_path: pathlib.Path) -> None:
    path, notes, weights = tmp_path / "model.pb", tmp_path / "notes", np.zeros(1 << 16, np.float32)
    formats.save(Graph([const("w", weights)]), path)
    held = formats.load(path)
    first = graph_content.graph_digest(formats.load(path), notes)
    weights[12345] = 1
    formats.save(Graph([const("w", weights)]), path)
    now = graph_content.graph_digest(formats.load(path), notes)
    assert graph_content.graph_digest(held, notes) == first != now


def test_a_large_loaded_graph_is_known_by_its_file_unhashed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 1)
    path, notes = tmp_path / "model.pb", tmp_path / "notes"
    formats.save(product(), path)
    held = formats.load(path)
    with monkeypatch.context() as unhashed:
        unhashed.setattr(digest, "_sha256", lambda path: 1 / 0)
        first = graph_content.graph_digest(formats.load(path), notes)
        assert graph_content.graph_digest(formats.load(path), notes) == first
        changed = held.map_nodes(lambda node: node.replace(op="Elu") if node.name == "y" else node)
        assert graph_content.graph_digest(changed, notes) != first
    formats.save(Graph([const("w", WEIGHTS + 1), *list(product())[1:]]), path)  # of the same size
    now = graph_content.graph_digest(formats.load(path), notes)
    assert len({first, now, graph_content.graph_digest(held, notes)}) == 3
    assert graph_content.graph_digest(formats.load(path), notes) == now


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
