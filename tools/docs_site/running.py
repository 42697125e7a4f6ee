"""Runs a page's blocks as a reader would: in one folder, one after the other."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping

from docs_site.blocks import Block, blocks, same_output

SHELL = 'set -e -o pipefail\npocketgraph() { "$PYTHON" -m pocketgraph "$@"; }\n'
LEAVES_WITH = re.compile(r"# leaves with (\d)")
WIDTH = 100  # columns of the terminal that pages show
TIMEOUT = 300  # seconds


class BlockError(AssertionError):
    """A block did not run, or did not print what the page shows."""


def run_page(text: str, folder: pathlib.Path) -> dict[Block, str]:
    """Runs the blocks of a page in a folder; gives what each printed.

    Raises:
        BlockError: a block failed.
    """
    names: dict[str, object] = {"__name__": "page"}
    printed = {}
    with terminal(folder):
        for block in blocks(text):
            if block.runs:
                printed[block] = run_python(block, names) if block.language == "python" else run_shell(block, folder)
    return printed


def check(printed: Mapping[Block, str]) -> None:
    """Refuses an output that is not the one shown."""
    for block, output in printed.items():
        if block.output is not None and not same_output(block.output, output):
            raise BlockError(f"line {block.line} prints\n{output}\nand the page shows\n{block.output}")


def rewritten(text: str, printed: Mapping[Block, str]) -> str:
    """The page with outputs that differ replaced by those printed."""
    for block, output in reversed(list(printed.items())):
        if block.output is not None and not same_output(block.output, output):
            begin, end = block.output_span
            tidy = "\n".join(line.rstrip() for line in output.strip("\n").split("\n"))
            text = f"{text[:begin]}{tidy}\n{text[end:]}"
    return text


@contextlib.contextmanager
def terminal(folder: pathlib.Path) -> Iterator[None]:
    """A terminal of a fixed width in a folder."""
    before, where, told = dict(os.environ), pathlib.Path.cwd(), list(sys.path)
    os.environ.update(COLUMNS=str(WIDTH), NO_COLOR="1", PYTHON=sys.executable, HOME=str(folder))
    os.chdir(folder)
    sys.path.insert(0, "")
    try:
        yield
    finally:
        os.chdir(where)
        os.environ.clear()
        os.environ.update(before)
        sys.path[:] = told


def run_python(block: Block, names: dict[str, object]) -> str:
    """Executes Python; gives what it printed. A block that begins with a comment of a file's name becomes that file."""
    if file := re.match(r"# ([a-z_]+\.py)\n", block.text):
        pathlib.Path(file[1]).write_text(block.text, "utf-8")
        return ""
    out = io.StringIO()
    with told_on(out):
        try:
            exec(compile("\n" * (block.line - 1) + block.text, "page", "exec"), names)
        except Exception as error:
            raise BlockError(f"line {block.line}: {''.join(traceback.format_exception(error))}") from error
    return out.getvalue()


def run_shell(block: Block, folder: pathlib.Path) -> str:
    """Runs commands, those of pocketgraph in this process where nothing of a shell is used; gives what they printed."""
    calls = [simple_call(line) for line in logical_lines(block.text)]
    if all(call is not None for call in calls):
        return "".join(run_call(call, block) for call in calls if call is not None)
    done = subprocess.run(
        ["bash", "-c", SHELL + block.text], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, encoding="utf-8", timeout=TIMEOUT, check=False,
    )  # fmt: skip
    wanted = LEAVES_WITH.search(block.text)
    if done.returncode != (int(wanted[1]) if wanted else 0):
        raise BlockError(f"line {block.line}: {block.text}leaves with {done.returncode}\n{done.stdout}")
    return done.stdout


def logical_lines(text: str) -> list[str]:
    """Commands, each with the lines that go on in quotes or behind a backslash."""
    lines: list[str] = []
    open_line = ""
    for line in text.split("\n"):
        open_line = f"{open_line}\n{line}" if open_line else line
        if open_line.endswith("\\"):
            open_line = open_line[:-1]
            continue
        try:
            shlex.split(open_line, comments=True)
        except ValueError:
            continue
        if open_line.strip():
            lines.append(open_line)
        open_line = ""
    return [*lines, open_line] if open_line else lines


def simple_call(line: str) -> tuple[list[str], int] | None:
    """The arguments of a call of pocketgraph and its exit code; None when it takes a shell to run the line."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words = list(reader)
    if words[:1] != ["pocketgraph"] or re.search(r"[$`]", line) or any(re.fullmatch(r"[();<>|&]+", w) for w in words):
        return None
    wanted = LEAVES_WITH.search(line)
    arguments = [found for word in words[1:] for found in sorted(glob.glob(word)) or [word]]
    return arguments, int(wanted[1]) if wanted else 0


def run_call(call: tuple[list[str], int], block: Block) -> str:
    """Runs one command in this process."""
    from pocketgraph.cli.main import main

    arguments, wanted = call
    out = io.StringIO()
    code: object = 0
    with told_on(out):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code or 0
    if code != wanted:
        raise BlockError(f"line {block.line}: pocketgraph {shlex.join(arguments)} leaves with {code}\n{out.getvalue()}")
    return out.getvalue()


@contextlib.contextmanager
def told_on(out: io.StringIO) -> Iterator[None]:
    """What is printed, and warned of, goes there."""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=out)
        yield
