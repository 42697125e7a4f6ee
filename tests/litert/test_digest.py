"""Digests of model files and graphs: of the content, remembered, and of no other content."""

from __future__ import annotations

import hashlib
import os
import pathlib
import time
from types import SimpleNamespace

import numpy as np
import pytest

from litert.parts import WEIGHTS, product
from pocketgraph import budgets, formats
from pocketgraph.graph import Graph, const
from pocketgraph.litert import digest, graph_content
from pocketgraph.litert.cache_integrity import sealed_text, unsealed


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


def test_a_file_that_is_cut_while_it_is_hashed_does_not_end_the_process(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(bytes(3 * digest.CHUNK))
    monkeypatch.setattr(budgets, "check_time", lambda _: os.truncate(path, 8))
    assert digest.file_digest(path, "") == hashlib.sha256(bytes(digest.CHUNK)).hexdigest()


def test_the_first_large_file_of_a_size_has_a_name_without_being_hashed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "LATER_FROM", 3)
    hashed: list[str] = []
    really = digest.sha256_of
    monkeypatch.setattr(digest, "sha256_of", lambda path: (hashed.append(pathlib.Path(path).name), really(path))[1])
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

    really = digest.sha256_of

    def exchanged(path: str) -> str:
        found = really(path)
        pathlib.Path(path).write_bytes(b"xyz")
        return found

    path.write_bytes(b"now")
    monkeypatch.setattr(digest, "sha256_of", exchanged)
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
    really = digest.sha256_of

    def exchanged(path: str) -> str:
        if path.endswith("first.pb"):
            first.write_bytes(b"abd")
        return really(path)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(digest, "sha256_of", exchanged)
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
    monkeypatch.setattr(digest, "sha256_of", lambda path: 1 / 0)  # it is remembered
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


def test_a_graph_as_it_was_loaded_has_the_name_of_its_file_and_others_have_not(tmp_path: pathlib.Path) -> None:
    path, notes = tmp_path / "model.pb", tmp_path / "notes"
    formats.save(product(), path)
    loaded, name = formats.load(path), digest.content_name(path, notes)
    assert graph_content.graph_digest(loaded, notes) == name
    assert graph_content.graph_digest(loaded.replace(outputs=["p"]), notes) != name
    formats.save(product(), path, form="text")
    assert graph_content.graph_digest(formats.load(path), notes) == graph_content.graph_digest(product(), notes)


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
        unhashed.setattr(digest, "sha256_of", lambda path: 1 / 0)
        first = graph_content.graph_digest(formats.load(path), notes)
        assert graph_content.graph_digest(formats.load(path), notes) == first
        changed = held.map_nodes(lambda node: node.replace(op="Elu") if node.name == "y" else node)
        assert graph_content.graph_digest(changed, notes) != first
    formats.save(Graph([const("w", WEIGHTS + 1), *list(product())[1:]]), path)  # of the same size
    now = graph_content.graph_digest(formats.load(path), notes)
    assert len({first, now, graph_content.graph_digest(held, notes)}) == 3
    assert graph_content.graph_digest(formats.load(path), notes) == now
