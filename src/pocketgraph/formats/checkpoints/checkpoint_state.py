"""Finds the checkpoint that somebody means: the text file ``checkpoint``, a directory, a prefix or one of its files."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from pocketgraph.errors import FormatError, did_you_mean
from pocketgraph.formats.content import TABLE_MAGIC, Kind, of_tail
from pocketgraph.formats.files import mapped
from pocketgraph.graph.groups import by_key
from pocketgraph.pages.quantities import listed
from pocketgraph.protobuf.c_escapes import unescaped

STATE_FILE = "checkpoint"
LARGEST_STATE = 64 << 20  # bytes
OTHERS = (".index", ".meta", ".pb", ".pbtxt", ".jpg", ".jpeg", ".png", ".npy", ".txt", ".json")
"""Endings of files that are no V1 checkpoint, as training directories hold in great numbers."""
_DATA_FILE = re.compile(r"(?P<prefix>.+)\.data-\d{5,}-of-\d{5,}")
_SHARD = re.compile(r"(?P<prefix>.+)-(?:\d{5}|\?{5})-of-(?P<count>\d{5}|\?{5})", re.DOTALL)
_STEP = re.compile(r"(?P<stem>.*)-(?P<step>\d+)")
_FIELD = re.compile(
    r"""\b(?P<field>model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*
        (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""",
    re.VERBOSE,
)


def find_prefix(path: str | os.PathLike[str]) -> str:
    """The prefix (path without ``.index``) of the checkpoint that ``path`` stands for.

    A checkpoint of the older V1 form that is one file is its own prefix; that of a sharded one is the path without
    ``-00000-of-00003``.

    Args:
        path: a prefix, an ``.index``, ``.data-…`` or ``.meta`` file of it, a shard or pattern of shards of the older
            form, the state file ``checkpoint``, a training directory, or a SavedModel directory.

    Raises:
        FormatError: there is none, or several and nothing says which; the message lists them.
    """
    text = os.fspath(path)
    if os.path.isdir(text):
        return _of_directory(text)
    for prefix in [text, *_without_suffix(text)]:
        if is_checkpoint(prefix):
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
        f"there is {listed(near, 6)}" if near else f"there are no checkpoints in {folder}"
    )
    raise FormatError(f"Input checkpoint '{text}' doesn't exist! There is no file {missing}", hint=hint)


def is_checkpoint(prefix: str) -> bool:
    """Whether a checkpoint of either form has exactly this prefix."""
    return os.path.isfile(prefix + ".index") or bool(v1_files(prefix))


def v1_files(prefix: str) -> list[str]:
    """The files of the V1 checkpoint of this prefix, sorted; none when there is none.

    Raises:
        FormatError: some of its shards are missing.
    """
    if "\0" in prefix:
        return []
    if os.path.isfile(prefix):
        return [prefix] if not _SHARD.fullmatch(prefix) and _is_v1(prefix) else []
    matches = map(_SHARD.fullmatch, sorted(glob.glob(glob.escape(prefix) + "-?????-of-?????")))
    shards = by_key(
        (int(match["count"]), match[0])
        for match in matches
        if match and match["count"].isdecimal() and match[0][len(match["prefix"]) + 1 :][:5].isdecimal()
    )
    if not shards:
        return []
    count, found = max(shards.items(), key=lambda item: len(item[1]))
    expected = [f"{prefix}-{number:05d}-of-{count:05d}" for number in range(count)]
    missing = [path for path in expected if path not in found]
    if missing:
        raise FormatError(
            f"of the checkpoint's {count} files {len(missing)} are missing, such as {missing[0]}", where=prefix,
            hint="copy the missing ones too",
        )  # fmt: skip
    return expected if all(map(_is_v1, expected)) else []


def prefixes(folder: str) -> list[str]:
    """The names (without folder) of the checkpoints in a folder, sorted; none when it cannot be read.

    Those of the older V1 form are files of any name that end as such a file does, or shards.
    """
    try:
        names = set(os.listdir(folder))
    except (OSError, ValueError):  # no path holds a NUL
        return []
    found = {name[: -len(".index")] for name in names if name.endswith(".index")}
    old = {name for name in names if not name.endswith(OTHERS) and ends_as_table(os.path.join(folder, name))}
    old |= {match["prefix"] for match in map(_SHARD.fullmatch, names) if match and ".data" not in match["prefix"][-5:]}
    for name in old - found:
        try:
            if v1_files(os.path.join(folder, name)):
                found.add(name)
        except FormatError:
            continue  # it lacks a shard
    return sorted(found)


def ends_as_table(path: str) -> bool:
    """Whether a file ends as a V1 checkpoint does; reads eight bytes. A pipe may never end, and a device may act."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            file.seek(-len(TABLE_MAGIC), os.SEEK_END)
            return file.read() == TABLE_MAGIC
    except OSError:
        return False


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
        found[match["field"]].append(unescaped(match["text"][1:-1].encode()).decode("utf-8", "replace"))
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
        for candidate in [prefix, *_without_suffix(prefix)]:
            if is_checkpoint(candidate):
                return candidate
        if os.path.isfile(prefix):
            raise FormatError(_what_it_is(prefix), where=prefix)
    here = prefixes(folder or ".")
    raise FormatError(
        f"says that the latest checkpoint is {named}, which is not here (no file {moved}.index)", where=state_file,
        hint=f"copy it, or name another one: {listed(here, 6)}" if here else "copy the checkpoint's files here too",
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
        raise FormatError(
            "there is no checkpoint in this directory (no .index file, none of the form V1)", where=folder
        )
    steps = [_STEP.fullmatch(name) for name in names]
    stems = {match["stem"] for match in steps if match}
    if len(names) == 1:
        return os.path.join(folder, names[0])
    if all(steps) and len(stems) == 1:
        return os.path.join(folder, max(names, key=lambda name: int(name.rpartition("-")[2])))
    raise FormatError(
        "there are several checkpoints in this directory and no state file 'checkpoint' says which is meant",
        where=folder, hint=f"name one: {listed([os.path.join(folder, name) for name in names], 6)}",
    )  # fmt: skip


def _without_suffix(text: str) -> list[str]:
    data = _DATA_FILE.fullmatch(text) or _SHARD.fullmatch(text)
    found = [data["prefix"]] if data else []
    return found + [text[: -len(suffix)] for suffix in (".index", ".meta") if text.endswith(suffix)]


def _what_it_is(path: str) -> str:
    """Why a file that exists is no checkpoint."""
    if _DATA_FILE.fullmatch(path):
        return "this data file's index is missing (the file that ends in .index)"
    if path.endswith(".index"):
        return "cannot be read"
    return "this is not a checkpoint, or one of the older V1 form that was cut off"


def _is_v1(path: str) -> bool:
    try:
        return of_tail(mapped(path)) is Kind.CHECKPOINT_V1
    except FormatError:
        return False


def step_of(prefix: str | Path) -> int:
    """The training step in a prefix such as ``model.ckpt-1000``, or -1."""
    match = _STEP.fullmatch(os.path.basename(os.fspath(prefix)))
    return int(match["step"]) if match else -1
