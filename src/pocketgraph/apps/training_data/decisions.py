"""What is to become of photos, as lines of JSON that a person can change, and the new folder that they make."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from io import TextIOWrapper

from pocketgraph.apps.training_data.photo_checks import Finding
from pocketgraph.datasets.class_labels import label_of
from pocketgraph.datasets.file_lists import files_in
from pocketgraph.errors import FormatError, PocketgraphError, UsageError
from pocketgraph.formats.files import no_folder, opened, reason, write_atomically
from pocketgraph.part_files import part_name

DECISIONS = ("keep", "drop", "relabel")


@dataclass(frozen=True)
class Decision:
    """What is to become of one photo: ``decision`` is "keep", "drop" or "relabel", then with the new ``label``."""

    path: str
    decision: str
    label: str = ""


def write_decisions(findings: Iterable[Finding], path: str | os.PathLike[str]) -> int:
    """Writes a line of JSON a finding: path, finding, decision, label, why. Gives how many."""
    lines = [
        json.dumps(
            {
                "path": one.path,
                "finding": one.kind,
                "decision": one.decision,
                **({"label": one.label} if one.label else {}),
                "why": one.why,
            }
        )
        for one in findings
    ]
    write_atomically(path, "".join(line + "\n" for line in lines).encode())
    return len(lines)


def read_decisions(path: str | os.PathLike[str]) -> list[Decision]:
    """What a file of decisions says of each photo: of several lines "drop" counts before "relabel" before "keep".

    Raises:
        FormatError: a line is none, or two give a photo different labels.
    """
    place = os.fspath(path)
    try:
        with TextIOWrapper(opened(place), encoding="utf-8-sig") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"the decisions cannot be read: {reason(error)}", where=place) from None
    found: dict[str, Decision] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        one = _decision(line, f"{place}, line {number}")
        before = found.get(one.path)
        if before is not None and before.decision == one.decision == "relabel" and before.label != one.label:
            raise FormatError(
                f"'{one.path}' is to be both '{before.label}' and '{one.label}'", where=f"{place}, line {number}"
            )
        strong = ("keep", "relabel", "drop").index
        if before is None or strong(one.decision) > strong(before.decision):
            found[one.path] = one
    return list(found.values())


def apply_decisions(
    decisions: Iterable[Decision], folder: str | os.PathLike[str], new: str | os.PathLike[str]
) -> Counter[str]:
    """Copies a folder, without what is dropped, and with what is relabelled in its new class's folder.

    The old folder is only read. The new one is there whole or not at all.

    Args:
        decisions: about photos in the folder; what they do not name is kept.
        folder: that was looked through.
        new: a folder that is not there yet.

    Returns:
        how many files were kept, dropped and relabelled.

    Raises:
        UsageError: the new folder is there, or inside the old one.
        FormatError: there is no such folder, or a decision is about a photo that is not in it.
    """
    source, target = os.fspath(folder), os.fspath(new)
    if not os.path.isdir(source):
        raise no_folder(source)
    if os.path.lexists(target):
        raise UsageError("this is there already", where=target, hint="name a new folder")
    if (os.path.realpath(target) + os.sep).startswith(os.path.realpath(source) + os.sep):
        raise UsageError("the new folder would be inside the old one", where=target)
    if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
        raise UsageError("the folder to write to does not exist", where=os.path.dirname(target))
    by_path = {one.path: one for one in decisions}
    files = [os.path.relpath(path, source).replace(os.sep, "/") for path in files_in(source, hidden=())]
    for path in by_path:
        if path not in files:
            raise FormatError(f"there is no '{path}' here, of which a decision is", where=source)
    folders = {label_of(name): name for name in sorted({file.partition("/")[0] for file in files if "/" in file})}
    moves: dict[str, str] = {}
    counts: Counter[str] = Counter(dict.fromkeys(DECISIONS, 0))
    for file in files:
        one = by_path.get(file)
        counts[one.decision if one is not None else "keep"] += 1
        if one is None or one.decision == "keep":
            moves[file] = file
    taken = set(moves)
    for file in files:
        one = by_path.get(file)
        if one is not None and one.decision == "relabel":
            inside = folders.get(label_of(one.label), one.label)
            moves[file] = _free(f"{inside}/{file.rpartition('/')[2]}", taken)
            taken.add(moves[file])
    beside = part_name(os.path.abspath(target))
    try:
        for old, place in moves.items():
            made = os.path.join(beside, *place.split("/"))
            os.makedirs(os.path.dirname(made), exist_ok=True)
            shutil.copy2(os.path.join(source, *old.split("/")), made)
        os.makedirs(beside, exist_ok=True)
        os.rename(beside, target)
    except OSError as error:
        raise PocketgraphError(f"the new folder cannot be written: {reason(error)}", where=target) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return counts


def _decision(line: str, where: str) -> Decision:
    try:
        read = json.loads(line)
        path, decision, label = read["path"], read["decision"], read.get("label", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError("this is no decision", where=where, hint='{"path": …, "decision": "drop"}') from None
    if not isinstance(path, str) or decision not in DECISIONS:
        raise FormatError(f"a decision is {', '.join(DECISIONS)}", where=where)
    if not isinstance(label, str) or (decision == "relabel" and not _is_name(label)):
        raise FormatError("relabel needs a label that can be a folder's name", where=where)
    return Decision(path, decision, label)


def _is_name(label: str) -> bool:
    return bool(label.strip()) and not label.startswith(".") and not set(label) & set("/\\\0") and label.isprintable()


def _free(path: str, taken: set[str]) -> str:
    """A name that is not taken: this one, or with a number behind it."""
    stem, ending = os.path.splitext(path)
    number, found = 2, path
    while found in taken:
        number, found = number + 1, f"{stem} {number}{ending}"
    return found
