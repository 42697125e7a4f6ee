"""Finds the checkpoint that somebody means: the text file ``checkpoint``, a directory, a prefix or one of its files."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pocketgraph.errors import FormatError, did_you_mean
from pocketgraph.formats.sstable import FOOTER_BYTES, looks_like_table

STATE_FILE = "checkpoint"
LARGEST_STATE = 64 << 20  # bytes
_DATA_FILE = re.compile(r"(?P<prefix>.+)\.data-\d{5,}-of-\d{5,}")
_STEP = re.compile(r"(?P<stem>.*)-(?P<step>\d+)")
_FIELD = re.compile(
    r"""\b(?P<field>model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*
        (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""",
    re.VERBOSE,
)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def find_prefix(path: str | os.PathLike[str]) -> str:
    """The prefix (path without ``.index``) of the V2 checkpoint that ``path`` stands for.

    Args:
        path: a prefix, an ``.index``, ``.data-…`` or ``.meta`` file of it, the state file ``checkpoint``, a training
            directory, or a SavedModel directory.

    Raises:
        FormatError: there is none, or several and nothing says which; the message lists them.
    """
    text = os.fspath(path)
    if os.path.isdir(text):
        return _of_directory(text)
    if os.path.isfile(text + ".index"):
        return text
    for prefix in _without_suffix(text):
        if os.path.isfile(prefix + ".index"):
            return prefix
    if os.path.isfile(text):
        if os.path.basename(text).startswith(STATE_FILE):
            return _latest(text)
        raise FormatError(_what_it_is(text), where=text, hint="give the checkpoint's prefix, such as model.ckpt-1000")
    folder = os.path.dirname(text) or "."
    near = [os.path.join(os.path.dirname(text), name) for name in prefixes(folder)]
    data = _DATA_FILE.fullmatch(text)
    missing = (data["prefix"] if data else text.removesuffix(".index")) + ".index"
    hint = did_you_mean(text, near) or (
        f"there is {_listed(near)}" if near else f"there are no checkpoints in {folder}"
    )
    raise FormatError(f"Input checkpoint '{text}' doesn't exist! There is no file {missing}", hint=hint)


def prefixes(folder: str) -> list[str]:
    """The names (without folder) of the V2 checkpoints in a folder, sorted; none when it cannot be read."""
    try:
        return sorted(name[: -len(".index")] for name in os.listdir(folder) if name.endswith(".index"))
    except OSError:
        return []


def read_state(path: str) -> tuple[str, list[str]]:
    """(latest, all) checkpoint paths of a state file, as written there; relative ones are relative to its folder.

    Raises:
        FormatError: the file names no checkpoint.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST_STATE).decode("utf-8", "replace")
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", where=path) from None
    found: dict[str, list[str]] = {"model_checkpoint_path": [], "all_model_checkpoint_paths": []}
    for match in _FIELD.finditer(text):
        found[match["field"]].append(_unescaped(match["text"][1:-1]))
    if not found["model_checkpoint_path"]:
        raise FormatError(
            "names no model_checkpoint_path, so it is not a checkpoint state file", where=path,
            hint="give the checkpoint's prefix, such as model.ckpt-1000",
        )  # fmt: skip
    return found["model_checkpoint_path"][-1], found["all_model_checkpoint_paths"]


def _latest(state_file: str) -> str:
    """The checkpoint that a state file names; beside the state file when the directory has been moved."""
    folder = os.path.dirname(state_file)
    named, _ = read_state(state_file)
    moved = os.path.join(folder, re.split(r"[/\\]", named)[-1])
    for prefix in (os.path.join(folder, named), moved):
        if os.path.isfile(prefix + ".index"):
            return prefix
        if os.path.isfile(prefix):
            raise FormatError(_what_it_is(prefix), where=prefix)
    here = prefixes(folder or ".")
    raise FormatError(
        f"says that the latest checkpoint is {named}, which is not here (no file {moved}.index)", where=state_file,
        hint=f"copy it, or name another one: {_listed(here)}" if here else "copy the checkpoint's files here too",
    )  # fmt: skip


def _of_directory(folder: str) -> str:
    state_file = os.path.join(folder, STATE_FILE)
    if os.path.isfile(state_file):
        return _latest(state_file)
    saved_model = os.path.join(folder, "variables", "variables")
    if os.path.isfile(saved_model + ".index"):
        return saved_model
    names = prefixes(folder)
    if not names:
        raise FormatError("there is no checkpoint in this directory (no file that ends in .index)", where=folder)
    steps = [_STEP.fullmatch(name) for name in names]
    stems = {match["stem"] for match in steps if match}
    if len(names) == 1:
        return os.path.join(folder, names[0])
    if all(steps) and len(stems) == 1:
        return os.path.join(folder, max(names, key=lambda name: int(name.rpartition("-")[2])))
    raise FormatError(
        "there are several checkpoints in this directory and no state file 'checkpoint' says which is meant",
        where=folder, hint=f"name one: {_listed([os.path.join(folder, name) for name in names])}",
    )  # fmt: skip


def _without_suffix(text: str) -> list[str]:
    data = _DATA_FILE.fullmatch(text)
    found = [data["prefix"]] if data else []
    return found + [text[: -len(suffix)] for suffix in (".index", ".meta") if text.endswith(suffix)]


def _what_it_is(path: str) -> str:
    """Why a file that exists cannot be opened as a V2 checkpoint."""
    if _DATA_FILE.fullmatch(path):
        return "this data file's index is missing (the file that ends in .index)"
    if path.endswith(".index"):
        return "cannot be read"
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - FOOTER_BYTES))
            tail = file.read(FOOTER_BYTES)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if looks_like_table(tail):
        return "this is a checkpoint of the older V1 form, which cannot be read yet; save it with write_version=V2"
    return "this is not a checkpoint"


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[bytes]) -> bytes:
        octal, hexadecimal, letter = match.groups()
        if octal is not None:
            return bytes([int(octal, 8) & 0xFF])
        if hexadecimal is not None:
            return bytes([int(hexadecimal, 16)])
        return _LETTERS.get(letter, letter)

    return _ESCAPE.sub(replaced, text.encode()).decode("utf-8", "replace")


def _listed(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def step_of(prefix: str | Path) -> int:
    """The training step in a prefix such as ``model.ckpt-1000``, or -1."""
    match = _STEP.fullmatch(os.path.basename(os.fspath(prefix)))
    return int(match["step"]) if match else -1
