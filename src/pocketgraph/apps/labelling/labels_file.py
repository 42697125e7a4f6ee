"""What raters said of photos: lines of JSON that are on the disk before the page is told, so that none is lost.

The first line holds the classes, and whether photos get boxes. Each other one is one decision of one rater: ``label``,
``boxes``, ``skip``, or ``undo``, which takes the rater's last one of that photo back. Nothing is ever overwritten.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import gmtime, strftime
from typing import Any

from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.formats.files import reason

AGREED = "agreed"
"""The rater whose decisions settle what the others dispute."""
KINDS = ("label", "boxes", "skip", "undo")
MOST_BOXES = 1000  # of a photo
HEAD = b'{"classes": '
"""How a file begins."""


@dataclass(frozen=True)
class Box:
    """A thing in a photo: its class, and where it is, in pixels of the file from the upper left corner."""

    label: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Judgement:
    """What one rater says of one photo.

    Attributes:
        path: of the photo in its folder, with "/".
        rater: who.
        kind: "label", "boxes" or "skip".
        label: the class, of a "label".
        boxes: of "boxes".
    """

    path: str
    rater: str
    kind: str
    label: str = ""
    boxes: tuple[Box, ...] = ()


@dataclass
class _Rater:
    judgements: dict[str, list[Judgement]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)


class LabelsFile:
    """The decisions in a file, and the place where new ones go. Several processes may append to one file.

    Args:
        path: of the file.
        classes: to choose from; those of the file by default. More than the file has are added to it.
        boxes: whether photos get boxes; as in the file by default.
        must_exist: whether a missing file is an error; else it is made with the first decision.

    Attributes:
        classes: to choose from.
        has_boxes: whether photos get boxes.
        torn: lines that a killed writer left unfinished, which no page was told of.

    Raises:
        FormatError: this is no such file, or it cannot be read.
        UsageError: there are no classes, they are no names, or they lack one that is in the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        classes: Sequence[str] = (),
        boxes: bool | None = None,
        *,
        must_exist: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self.classes = tuple[str, ...]()
        self.has_boxes = False
        self.torn = 0
        self._raters: dict[str, _Rater] = {}
        self._known: set[str] = set()
        self._read = 0
        self._has_head = False
        self.refresh()
        if must_exist and not self._has_head:
            raise FormatError("there are no labels here", where=self.path, hint="pocketgraph dataset label makes them")
        if not classes and not self._has_head:
            raise UsageError("no classes are given", hint=f"{option('classes')}=cat,dog,other")
        for name in classes:
            if not is_class(name):
                raise UsageError(f"'{name}' is no name for a class", hint="classes become folders: letters and blanks")
        if len(set(classes)) < len(classes):
            raise UsageError(f"a class is named twice: {', '.join(classes)}")
        lacking = [known for known in self.classes if classes and known not in classes]
        if lacking:
            raise UsageError(
                f"these labels have the class '{lacking[0]}' too",
                where=self.path,
                hint=f"add it to {option('classes')}",
            )
        if self._has_head and boxes is not None and boxes != self.has_boxes:
            raise UsageError(
                f"these labels are {'boxes' if self.has_boxes else 'classes of whole photos'}",
                where=self.path,
                hint=f"pass another {option('output', 'path')}",
            )
        if classes and tuple(classes) != self.classes:
            self.classes, self.has_boxes = tuple(classes), self.has_boxes if self._has_head else bool(boxes)
            self._append({"classes": list(self.classes), "boxes": self.has_boxes})
            self._has_head = True

    def refresh(self) -> None:
        """Reads what others have appended."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise FormatError(f"the labels cannot be read: {reason(error)}", where=self.path) from None
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            if line.strip():
                self._take(line)

    def decide(self, judgement: Judgement | None, key: str, *, path: str = "", rater: str = "") -> bool:
        """Writes a decision to the disk; it is there when this returns.

        Args:
            told: the decision; None takes the rater's last one of ``path`` back.
            key: names the decision, so that one that is told twice counts once.
            path, rater: whose decision is taken back, and of what.

        Returns:
            whether it is new.

        Raises:
            UsageError: the class is not among those of the file, or a box is none.
            FormatError: the file cannot be written.
        """
        if key in self._known:
            return False
        record: dict[str, Any] = {"path": path, "decision": "undo", "rater": rater}
        if judgement is not None:
            self._check(judgement)
            record = {"path": judgement.path, "decision": judgement.kind, "rater": judgement.rater}
            if judgement.kind == "label":
                record["label"] = judgement.label
            if judgement.kind == "boxes":
                record["boxes"] = [vars(box) for box in judgement.boxes]
        self._append({**record, "id": key, "at": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())})
        self.refresh()
        return True

    @property
    def raters(self) -> list[str]:
        """Those who decided something, in the order in which they came; without who settles disputes."""
        return [name for name, rater in self._raters.items() if name != AGREED and any(rater.judgements.values())]

    def of(self, rater: str) -> dict[str, Judgement]:
        """What a rater says of each photo now."""
        found = self._raters.get(rater, _Rater()).judgements
        return {path: said[-1] for path, said in found.items() if said}

    def history(self, rater: str) -> list[str]:
        """The photos that a rater decided on, in order, without those that were taken back."""
        return list(self._raters.get(rater, _Rater()).order)

    def _check(self, judgement: Judgement) -> None:
        if judgement.kind not in KINDS[:3] or (
            judgement.kind == "label" if self.has_boxes else judgement.kind == "boxes"
        ):
            raise UsageError(f"'{judgement.kind}' is no decision here")
        if len(judgement.boxes) > MOST_BOXES:
            raise UsageError(f"a photo has {MOST_BOXES} boxes at most")
        for label in [judgement.label] if judgement.kind == "label" else [box.label for box in judgement.boxes]:
            if label not in self.classes:
                raise UsageError(f"'{label[:100]}' is none of the classes")
        for box in judgement.boxes:
            if not (0 <= box.x < 1e6 and 0 <= box.y < 1e6 and 0 < box.width < 1e6 and 0 < box.height < 1e6):
                raise UsageError("a box has no place in the photo")

    def _append(self, record: dict[str, Any]) -> None:
        """One write to the end of the file, and to the disk. What a killed writer left is ended first."""
        data = (json.dumps(record) + "\n").encode()
        try:
            with open(self.path, "ab+", buffering=0) as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":
                        data = b"\n" + data
                while data:
                    data = data[file.write(data) :]
                os.fsync(file.fileno())
        except OSError as error:
            raise FormatError(f"the labels cannot be written: {reason(error)}", where=self.path) from None

    def _take(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError
        except (ValueError, RecursionError):
            if not self._has_head and not HEAD.startswith(line[: len(HEAD)]):
                raise FormatError("this is no file of labels", where=self.path) from None
            self.torn += 1
            return
        if "classes" in record:
            self._take_head(record)
            return
        try:
            path, rater, kind, key = (str(record[part]) for part in ("path", "rater", "decision", "id"))
            boxes = tuple(Box(str(box["label"]), *(float(box[n]) for n in SIDES)) for box in record.get("boxes", ()))
            if kind not in KINDS or not self._has_head:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise FormatError(
                f"this is no decision on a photo: {line[:80].decode('utf-8', 'replace')}", where=self.path
            ) from None
        if key in self._known:
            return
        self._known.add(key)
        of = self._raters.setdefault(rater, _Rater())
        said = of.judgements.setdefault(path, [])
        if kind != "undo":
            said.append(Judgement(path, rater, kind, str(record.get("label", "")), boxes))
            of.order.append(path)
        elif said:
            said.pop()
            del of.order[len(of.order) - 1 - of.order[::-1].index(path)]

    def _take_head(self, record: dict[str, Any]) -> None:
        names = record["classes"]
        if (
            not isinstance(names, list)
            or not names
            or not all(isinstance(name, str) and is_class(name) for name in names)
        ):
            raise FormatError("the classes of these labels are no names", where=self.path)
        self.classes, self.has_boxes, self._has_head = tuple(names), bool(record.get("boxes")), True


SIDES = ("x", "y", "width", "height")


def is_class(name: str) -> bool:
    """Whether a text can be a class: the name of a folder too."""
    return (
        bool(name.strip())
        and len(name) <= 100
        and name == name.strip()
        and not name.startswith(".")
        and not set(name) & set("/\\\0,")
        and name.isprintable()
    )
