"""Ops that touch files: refused unless allowed, then kept inside one directory; checkpoints that graphs save."""

import os
import pathlib

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.errors import FormatError, RunError
from pocketgraph.formats import open_checkpoint
from pocketgraph.formats.checkpoints.checkpoint_merge import parse_slice
from pocketgraph.graph import DType, Graph, Node, Tensor, opdefs
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.permissions import GROUPS
from pocketgraph.runtime.sandbox import Directory

FLOAT, STRING = DType.named("float"), DType.named("string")


def session(graph: Graph, folder: pathlib.Path) -> Session:
    return Session(graph, allow="files", files_dir=folder)


def texts(*items: bytes) -> np.ndarray:
    return np.array(items, object)


@pytest.mark.parametrize("op", sorted(op for ops in GROUPS.values() for op in ops))
def test_every_such_op_is_refused(op: str) -> None:
    assert opdefs.find(op) is not None or op == "TRTEngineOp"
    graph = Graph([Node("leak", op)])
    with pytest.raises(RunError, match=rf"which a model may not do unasked: 'leak' \({op}\)"):
        Session(graph).run([], targets=["leak"])


def test_one_op_alone_can_be_allowed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hello")
    graph = parse('name = Const(string "a.txt")\n text = ReadFile(name)\n write = WriteFile(name, text)')
    reader = Session(graph, allow=["ReadFile"], files_dir=tmp_path)
    assert reader.run("text")[0] == b"hello"
    with pytest.raises(RunError, match=r"'write' \(WriteFile\)"):
        reader.run([], targets=["write"])


def test_refused_inside_of_functions_too() -> None:
    graph = with_functions(
        parse('name = Const(string "a.txt")\n call = leaky(name)'),
        ["leaky(name: string) -> text: string = read:contents:0", "read = ReadFile(name)"],
    )
    with pytest.raises(RunError, match=r"may not do unasked: .*ReadFile"):
        Session(graph).run("call")


def test_without_a_directory_nothing_is_reached() -> None:
    graph = parse('name = Const(string "/etc/hostname")\n text = ReadFile(name)')
    with pytest.raises(RunError, match=r"node 'text': a ReadFile needs a directory.*files_dir="):
        Session(graph, allow="files").run("text")
    with pytest.raises(RunError, match="files_dir is no directory"):
        Session(graph, allow="files", files_dir="/no/such")


def test_code_that_is_allowed_still_has_no_kernel() -> None:
    with pytest.raises(RunError, match="No OpKernel was registered to support Op 'PyFunc'"):
        Session(Graph([Node("f", "PyFunc")]), allow="code").run([], targets=["f"])


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/hostname", "link/secret", "gs://bucket/x", "", "a\0b", "in/../../x"]
)
def test_names_that_lead_out(tmp_path: pathlib.Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("s")
    (inside / "link").symlink_to(tmp_path)
    files = Directory(inside)
    for call in (files.read, lambda n: files.write(n, b""), lambda n: files.save(n, [])):
        with pytest.raises(RunError, match=r"may not reach|no file name"):
            call(name)


def test_a_checkpoint_whose_data_file_is_a_link_out_is_not_written_through(tmp_path: pathlib.Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "m.index").symlink_to(tmp_path / "stolen.index")
    with pytest.raises(RunError, match="may not reach"):
        Directory(inside).save("m", [])
    (inside / "n.data-00000-of-00001").symlink_to(tmp_path / "stolen")
    with pytest.raises(RunError, match="may not reach"):
        Directory(inside).save("n", [("t", "", Tensor.from_numpy(np.float32([1])))])
    assert not (tmp_path / "stolen").exists()


def test_plain_files(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        name = Placeholder(dtype=string, shape=[])
        text = Placeholder(dtype=string, shape=[])
        write = WriteFile(name, text)
        read = ReadFile(name)
        pattern = Placeholder(dtype=string)
        found = MatchingFiles(pattern)
    """)
    files = session(graph, tmp_path)
    for name in ("b.txt", "a.txt", "deep/er/c.txt"):
        files.run([], {"name": name, "text": b"\x00" + name.encode()}, targets=["write"])
    assert files.run("read", {"name": "deep/er/c.txt"})[0] == b"\x00deep/er/c.txt"
    assert files.run("found", {"pattern": "*.txt"})[0].tolist() == [b"a.txt", b"b.txt"]
    whole = os.path.join(os.path.realpath(tmp_path), "deep/*/c.t?t")
    assert files.run("found", {"pattern": [whole, "*.png"]})[0].tolist() == [
        os.path.join(os.path.realpath(tmp_path), "deep/er/c.txt").encode()
    ]
    with pytest.raises(RunError, match=r"cannot be read: No such file"):
        files.run("read", {"name": "none"})


SAVER = parse("""
    prefix = Placeholder(dtype=string, shape=[])
    names = Placeholder(dtype=string, shape=[?])
    slices = Placeholder(dtype=string, shape=[?])
    a = Placeholder(dtype=float)
    b = Placeholder(dtype=int64)
    save = SaveV2(prefix, names, slices, a, b, dtypes=[float, int64])
    restore = RestoreV2(prefix, names, slices, dtypes=[float, int64])
    parts = Placeholder(dtype=string)
    merge = MergeV2Checkpoints(parts, prefix, delete_old_dirs=true)
    shard = Const(int32 2)
    shards = Const(int32 3)
    file = ShardedFilename(prefix, shard, shards)
    spec = ShardedFilespec(prefix, shards)
""")
A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4)
BOTH = {"names": texts(b"a", b"b"), "slices": texts(b"", b""), "a": A, "b": B}


def test_what_is_saved_is_read_again(tmp_path: pathlib.Path) -> None:
    saver = session(SAVER, tmp_path)
    saver.run([], {"prefix": "m", **BOTH}, targets=["save"])
    checkpoint = open_checkpoint(tmp_path / "m")
    np.testing.assert_array_equal(checkpoint["a"].numpy(), A)
    found = saver.run(["restore:0", "restore:1"], {"prefix": "m", "names": BOTH["names"], "slices": BOTH["slices"]})
    np.testing.assert_array_equal(found[0], A)
    np.testing.assert_array_equal(found[1], B)
    assert saver.run(["file", "spec"], {"prefix": "m"}) == [b"m-00002-of-00003", b"m-?????-of-00003"]


def test_slices_of_a_partitioned_variable_are_merged(tmp_path: pathlib.Path) -> None:
    saver = session(SAVER, tmp_path)
    whole = np.arange(20, dtype=np.float32).reshape(5, 4)
    for part, (rows, text) in enumerate([(slice(0, 2), b"5 4 0,2:-"), (slice(2, 5), b"5 4 2,3:-")]):
        feeds = {"names": texts(b"w", f"b{part}".encode()), "slices": texts(text, b""), "a": whole[rows], "b": B + part}
        saver.run([], {"prefix": f"temp/part-{part}", **feeds}, targets=["save"])
    saver.run([], {"prefix": "out/m", "parts": texts(b"temp/part-0", b"temp/part-1")}, targets=["merge"])
    assert not (tmp_path / "temp").exists()
    assert sorted(os.listdir(tmp_path / "out")) == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    checkpoint = open_checkpoint(tmp_path / "out" / "m")
    np.testing.assert_array_equal(checkpoint["w"].numpy(), whole)
    np.testing.assert_array_equal(checkpoint["b1"].numpy(), B + 1)
    asked = {"prefix": "out/m", "names": texts(b"w", b"b0"), "slices": texts(b"5 4 1,3:-", b"")}
    np.testing.assert_array_equal(saver.run("restore", asked)[0], whole[1:4])


def test_wrong_checkpoint_calls(tmp_path: pathlib.Path) -> None:
    saver = session(SAVER, tmp_path)
    saver.run([], {"prefix": "m", **BOTH}, targets=["save"])
    asked = {"prefix": "m", "names": BOTH["names"], "slices": BOTH["slices"]}
    for change, problem in (
        ({"names": texts(b"a", b"c")}, 'Key c not found in checkpoint "m"'),
        ({"names": texts(b"b", b"a")}, "tensor 'b' of 'm' is int64, the graph wants float"),
        ({"prefix": "none"}, "none"),
        ({"slices": texts(b"9 9 0,1:-", b"")}, r"has the shape \[2, 3\], not \[9, 9\]"),
        ({"slices": texts(b"2 3 0,9:-", b"")}, "no shape and slice"),
        ({"names": texts(b"a")}, "1 names and 2 slices for 2 tensors"),
    ):
        with pytest.raises(RunError, match=f"node 'restore': .*{problem}"):
            saver.run(["restore:0", "restore:1"], {**asked, **change})
    with pytest.raises(RunError, match=r"node 'save': .*saved twice"):
        saver.run([], {"prefix": "m", **BOTH, "names": texts(b"a", b"a")}, targets=["save"])
    with pytest.raises(RunError, match=r"node 'merge': .*no such file"):
        saver.run([], {"prefix": "out", "parts": texts(b"p-0", b"p-1")}, targets=["merge"])
    with pytest.raises(RunError, match=r"node 'merge': .*two parts hold the tensor"):
        saver.run([], {"prefix": "m2", **BOTH}, targets=["save"])
        saver.run([], {"prefix": "out", "parts": texts(b"m", b"m2")}, targets=["merge"])


@pytest.mark.parametrize("text", ["", "2", "2 3", "2 0,3", "2 -1,2", "2 3 -", "2 3 -:-:-", "x -", "2 0", "2 0,1,1"])
def test_wrong_slices(text: str) -> None:
    with pytest.raises(FormatError, match="no shape and slice"):
        parse_slice(text)


def test_many_refused_nodes_are_counted_and_the_message_says_what_to_pass() -> None:
    lines = [f"r{index} = ReadFile(name)" for index in range(25)]
    graph = parse("\n".join(["name = Placeholder(dtype=string, shape=[])", *lines]))
    with pytest.raises(RunError, match=r"'r0' \(ReadFile\), .* and 5 more; if you .*files_dir=DIRECTORY") as told:
        Session(graph).run([f"r{index}" for index in range(25)], {"name": "x"})
    assert "\n" not in str(told.value)


def test_a_file_that_cannot_be_read_is_told_with_the_node(tmp_path: pathlib.Path) -> None:
    graph = parse("name = Placeholder(dtype=string, shape=[])\nread = ReadFile(name)")
    with Session(graph, allow="files", files_dir=tmp_path) as opened:
        for name, said in (("gone", "No such file"), (".", "Is a directory")):
            with pytest.raises(RunError, match=f"node 'read': .*: the file cannot be read: {said}"):
                opened.run("read", {"name": name})
        with pytest.raises(RunError, match=r"node 'read': 'a\\x00b' is no file name; a graph reaches files in .* only"):
            opened.run("read", {"name": b"a\0b"})
