"""What holds on Windows too, as far as it can be seen elsewhere: no POSIX-only names at import, paths, line ends."""

from __future__ import annotations

import codecs
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from pocketgraph.cli.shared.options import named_files
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse

IMPORT_ALL = """
import os, signal, sys, mmap, pkgutil, subprocess, tempfile, shutil, multiprocessing, asyncio, socket, threading
import numpy, ml_dtypes, google_crc32c, click, rich.console, rich.table, rich.progress, PIL.Image, platformdirs
import google.protobuf.descriptor_pool, ai_edge_litert.interpreter
for name in ("onnx", "onnxruntime", "coremltools", "re2", "starlette.applications", "uvicorn", "websockets", "cv2",
             "cryptography.x509", "hnswlib", "tomli"):
    try:
        __import__(name)
    except ImportError:
        pass
POSIX = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "curses", "readline", "syslog", "posix")
for name in POSIX:
    sys.modules[name] = None
for name in ("fork", "getuid", "geteuid", "getgid", "getegid", "uname", "register_at_fork", "memfd_create", "statvfs",
             "sched_getaffinity", "fchmod", "chown", "killpg", "setsid", "mkfifo", "sysconf", "getloadavg", "wait4",
             "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "WNOHANG", "posix_fallocate", "pread", "sync"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "setitimer", "alarm"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in [name for name in dir(mmap) if name.startswith(("PROT_", "MAP_", "MADV_"))]:
    delattr(mmap, name)
import pocketgraph
count = 0
for found in pkgutil.walk_packages(pocketgraph.__path__, "pocketgraph."):
    if found.name != "pocketgraph.__main__" and "templates" not in found.name:
        try:
            __import__(found.name)
        except ModuleNotFoundError as error:  # of an extra that is not installed
            if (error.name or "").split(".")[0] in ("pocketgraph", *POSIX):
                raise
        count += 1
print(count)
"""


def test_every_module_is_imported_where_posix_names_are_missing() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 1000


def test_paths_of_windows_are_taken_as_they_are() -> None:
    """As any path: errors name it as it was written."""
    path = pathlib.PureWindowsPath(r"C:\models\none.pb")
    with pytest.raises(pocketgraph.PocketgraphError, match=r"C:\\models\\none\.pb"):
        pocketgraph.load(path)
    with pytest.raises(pocketgraph.PocketgraphError, match=r"C:\\models\\none\.pb"):
        pocketgraph.Session(path)
    assert not pocketgraph.identify(path).is_whole
    assert named_files([r"image=C:\photos\cat.jpg", r"C:\a=b.npz"])[0] == ("image", pathlib.Path(r"C:\photos\cat.jpg"))


def test_labels_of_windows(tmp_path: pathlib.Path) -> None:
    (tmp_path / "labels.txt").write_bytes("\ufeffcafé\r\nblue sky\r\n".encode())
    assert read_labels(tmp_path / "labels.txt") == ["café", "blue sky"]


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    nodes = parse("x = Placeholder(dtype=float, shape=[?,2])\ny = MatMul(x, w, T=float)")
    save(Graph([*nodes, const("w", np.eye(2, dtype=np.float32))]), tmp_path / "model.pb")
    return tmp_path / "model.pb"


def test_a_table_of_windows(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "table.csv").write_bytes("\ufeffa,b\r\n1,2\r\n3,5\r\n".encode())
    assert "2 samples" in repr(pocketgraph.evaluate([model, model], tmp_path / "table.csv"))


def test_a_list_of_pictures_of_windows(tmp_path: pathlib.Path) -> None:
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[1,2,2,3])
        axes = Const(int32 [1, 2])
        y = Mean(x, axes, T=float, Tidx=int32)
    """)
    for name in ("red one", "green"):
        Image.new("RGB", (4, 4), name.split()[0]).save(tmp_path / f"{name}.png")
    (tmp_path / "list.txt").write_bytes("\ufeffred one.png\tr\r\ngreen.png\tg\r\n".encode())
    (tmp_path / "labels.txt").write_bytes(b"r\r\ng\r\nb\r\n")
    found = pocketgraph.evaluate(nodes, tmp_path / "list.txt", labels=tmp_path / "labels.txt")
    assert "100.00%" in repr(found)


def test_a_training_directory_of_windows(tmp_path: pathlib.Path) -> None:
    from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint

    graph = parse("w = VariableV2(dtype=float, shape=[2])\nread = Identity(w, T=float)\ny = Neg(read, T=float)")
    save(graph, tmp_path / "graph.pbtxt")
    text = (tmp_path / "graph.pbtxt").read_bytes()
    (tmp_path / "graph.pbtxt").write_bytes(codecs.BOM_UTF8 + text.replace(b"\n", b"\r\n"))
    for step in (1, 2):
        write_checkpoint(tmp_path / f"model.ckpt-{step}", {"w": pocketgraph.Tensor.from_numpy(np.float32([step, 0]))})
    state = 'model_checkpoint_path: "C:\\\\train\\\\model.ckpt-1"\r\n'
    (tmp_path / "checkpoint").write_bytes(state.encode())
    with pocketgraph.Session(pocketgraph.freeze(tmp_path, "y")) as session:
        assert session.run("y")[0].tolist() == [-1, 0]


def test_what_is_written_has_the_same_bytes_on_each_system(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pocketgraph.save(pocketgraph.load(model), tmp_path / "model.pbtxt")
    assert b"\r" not in (tmp_path / "model.pbtxt").read_bytes()
