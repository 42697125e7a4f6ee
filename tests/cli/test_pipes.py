"""Models through pipes, and what stands in their way."""

from __future__ import annotations

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import pytest

from pocketgraph.cli.shared import ending
from pocketgraph.datasets import image_loading
from pocketgraph.errors import FormatError
from pocketgraph.formats import load, save
from pocketgraph.graph.text_format import parse
from support import default_signals

PROGRAM = [sys.executable, "-m", "pocketgraph"]


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\nkept = Identity(x, T=float)\ny = Relu(kept, T=float)")
    save(graph, tmp_path / "model.pb")
    return tmp_path / "model.pb"


def run(*arguments: object, fed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*PROGRAM, *map(str, arguments)], input=fed, capture_output=True, check=False)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_model_comes_in(model: pathlib.Path, name: str) -> None:
    done = run("summarize", name, fed=model.read_bytes())
    assert done.returncode == 0
    assert done.stdout.startswith(b"standard input, 96 B") or b"standard input" in done.stdout
    assert b"next:" not in done.stdout


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes among its files")
def test_a_pipe_with_a_name_is_read_as_a_model_and_refused_as_a_picture(
    model: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    with subprocess.Popen(["cp", model, pipe]):
        assert [node.name for node in load(pipe)] == ["x", "kept", "y"]
    with pytest.raises(FormatError, match="this is a pipe, and a file is needed"):
        image_loading.read(pipe)


def test_a_model_goes_through(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ends = ("--inputs=x", "--outputs=y", "-t", "remove_nodes(op=Identity)")
    done = run("transform_graph", "-", "-o", "-", *ends, fed=model.read_bytes())
    assert done.returncode == 0
    (tmp_path / "through.pb").write_bytes(done.stdout)
    assert [node.name for node in load(tmp_path / "through.pb")] == ["x", "y"]
    assert b"3 nodes" in done.stderr


def test_nothing_goes_out_when_the_work_fails(model: pathlib.Path) -> None:
    done = run("transform_graph", model, "-o", "-", "--outputs=none", "-t", "mobile")
    assert (done.returncode, done.stdout) == (2, b"")


def test_an_empty_pipe_and_two_models_of_one_pipe(model: pathlib.Path) -> None:
    assert b"nothing came in on standard input" in run("summarize", "-").stderr
    done = run("verify", "-", "-", fed=model.read_bytes())
    assert done.returncode == 2
    assert b"two are asked of it" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="limits are those of POSIX")
def test_a_pipe_that_temporary_files_have_no_room_for(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    limited = f"ulimit -f 1; exec {shlex.join([*PROGRAM, 'identify', '-'])}"  # blocks of a file
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    fed = model.read_bytes() + bytes(1 << 16)
    done = subprocess.run(["sh", "-c", limited], input=fed, capture_output=True, env=environment, check=False)
    assert done.returncode == 1
    assert b"standard input cannot be kept: File too large" in done.stderr
    assert b"set TMPDIR to a folder with room" in done.stderr
    assert list(tmp_path.iterdir()) == [model]


def waiting_for_a_pipe(
    tmp_path: pathlib.Path, program: list[str] = PROGRAM
) -> tuple[subprocess.Popen[bytes], pathlib.Path]:
    """A command that waits for its model, and the file that what came in so far is in."""
    waiting = subprocess.Popen(
        [*program, "identify", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)}, preexec_fn=default_signals,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not (kept := list(tmp_path.glob("pocketgraph.*/stdin"))) and time.monotonic() < until:
        time.sleep(0.01)
    assert len(kept) == 1
    return waiting, kept[0]


@pytest.mark.skipif(os.name != "posix", reason="a process that is ended cannot be told from another one there")
def test_what_a_killed_command_kept_of_a_pipe_goes_with_the_next(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    waiting, kept = waiting_for_a_pipe(tmp_path)
    with waiting:
        fed = model.read_bytes()
        during = subprocess.run(
            [*PROGRAM, "identify", "-"], input=fed, capture_output=True, env=environment, check=True
        )
        assert b"GraphDef" in during.stdout
        assert kept.exists(), "its process still reads"
        waiting.kill()
    assert kept.exists()
    subprocess.run([*PROGRAM, "identify", "-"], input=fed, capture_output=True, env=environment, check=True)
    assert list(tmp_path.iterdir()) == [model]


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("names", [["SIGTERM"], ["SIGHUP"], ["SIGINT"], ["SIGHUP", "SIGTERM"]], ids="+".join)
def test_a_command_that_is_ended_takes_its_files_with_it(names: list[str], tmp_path: pathlib.Path) -> None:
    waiting, _ = waiting_for_a_pipe(tmp_path)
    with waiting:
        waiting.send_signal(signal.SIGSTOP)  # so that two come at once, as timeout sends them
        for name in [*names, "SIGCONT"]:
            waiting.send_signal(signal.Signals[name])
        try:
            said = waiting.communicate(timeout=60)[1].decode()
        finally:
            waiting.kill()
    assert waiting.returncode == 128 + signal.Signals[names[0]]
    assert said.lstrip() == ("error: stopped\n" if names == ["SIGINT"] else f"error: stopped by {names[0]}\n")
    assert list(tmp_path.iterdir()) == []


NATIVE = """
import ctypes, time
from pocketgraph.cli.main import main
from pocketgraph.cli.shared import pipes

def native(*_):
    mutex = ctypes.create_string_buffer(256)  # zeros are a mutex that nobody holds
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(mutex)

def cleaning(*_):
    try:
        time.sleep(1000)
    finally:
        native()

def lost(*_):
    ctypes.CFUNCTYPE(None)(lambda: time.sleep(1000))()  # Python tells of what is raised in it, and drops it
    native()

pipes.shutil.copyfileobj = {what}
main()
"""
"""A command that waits in native code, from which no signal wakes it."""


@pytest.mark.skipif(sys.platform != "linux", reason="the mutex is Linux's")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_native_code_keeps_no_command_from_its_end(name: str, tmp_path: pathlib.Path) -> None:
    waiting, _ = waiting_for_a_pipe(tmp_path, [sys.executable, "-c", NATIVE.format(what="native")])
    with waiting:
        time.sleep(0.5)
        waiting.send_signal(signal.Signals[name])
        try:
            _, said = waiting.communicate(timeout=60)
        finally:
            waiting.kill()
    assert waiting.returncode == 128 + signal.Signals[name]
    assert said.decode() == ("\nerror: stopped\n" if name == "SIGINT" else f"\nerror: stopped by {name}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the mutex is Linux's")
@pytest.mark.parametrize(("name", "after"), [("SIGTERM", 4), ("SIGINT", 4), ("SIGINT", 0.5)])  # seconds
@pytest.mark.parametrize("what", ["cleaning", "lost"])
def test_a_second_signal_ends_a_command_that_did_not_end(
    what: str, name: str, after: float, tmp_path: pathlib.Path
) -> None:
    waiting, _ = waiting_for_a_pipe(tmp_path, [sys.executable, "-c", NATIVE.format(what=what)])
    with waiting:
        try:
            time.sleep(0.5)
            waiting.send_signal(signal.Signals[name])
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(after)
            waiting.send_signal(signal.Signals[name])
            _, said = waiting.communicate(timeout=ending.MOST / 2)
        finally:
            waiting.kill()
    assert waiting.returncode == 128 + signal.Signals[name]
    assert said.decode().splitlines()[-1].startswith("error: stopped")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["identify", "plan", "check", "print_required_ops"])
def test_the_file_that_stands_for_a_pipe_is_not_shown(command: str, model: pathlib.Path) -> None:
    done = run(command, "-", fed=model.read_bytes())
    assert done.returncode == 0
    assert b"/stdin" not in done.stdout + done.stderr
    if command == "identify":
        assert done.stdout.rstrip().endswith(b"next: pocketgraph summarize -")


def test_an_error_calls_a_pipe_by_its_name() -> None:
    done = run("summarize", "-", fed=b"no model at all")
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: standard input: ")


@pytest.mark.parametrize(
    ("typed", "begins"),
    [
        (("view", "-", "-o", "-"), b"<!doctype html>"),
        (("graph_to_dot", "-", "-o", "/dev/stdout"), b"digraph"),
        (("optimize_for_inference", "--input=-", "--output=-", "--input_names=x", "--output_names=y"), b"\n"),
    ],
)
def test_pages_and_drawings_go_out(
    typed: tuple[str, ...], begins: bytes, model: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*typed, fed=model.read_bytes())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pb"]


def test_a_second_model_comes_in(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = run("view", model, "--compare", "-", "-o", tmp_path / "x.html", fed=model.read_bytes())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["summarize {}", "view {} -o -", "convert {} out.pb", "transforms"])
def test_standard_streams_may_be_closed(command: str, model: pathlib.Path) -> None:
    typed = f"{shlex.join(PROGRAM)} {command.format(shlex.quote(str(model)))}"
    done = subprocess.run(f"{typed} <&- >&-", shell=True, cwd=model.parent, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert subprocess.run(f"{typed} <&- >&- 2>&-", shell=True, cwd=model.parent, check=False).returncode == 0
    if "out.pb" in command:
        assert list(load(model.parent / "out.pb").nodes) == ["x", "kept", "y"], "and nothing was printed into it"


def test_an_empty_name_of_a_folder_is_said(model: pathlib.Path) -> None:
    done = run("import_pb_to_tensorboard", f"--model_dir={model}", "--log_dir=")
    assert done.returncode == 1
    assert b"the name given is empty" in done.stderr


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="this system has no names for open files")
@pytest.mark.parametrize("command", ["convert {} /dev/fd/{} --to=text", "export {} -o /dev/fd/{} --target=tflite"])
def test_a_shell_takes_what_is_written(command: str, model: pathlib.Path) -> None:
    took, given = os.pipe()
    typed = command.format(model, given).split()
    done = subprocess.run([*PROGRAM, *typed], pass_fds=[given], capture_output=True, check=False)
    os.close(given)
    assert done.returncode == 0, done.stderr
    assert os.read(took, 1 << 16)[:8] in (b"node {\n ", b"\x1c\0\0\0TFL3")
    os.close(took)
