"""What data say is right: the index of each sample's class, or the numbers that a model should give."""

from __future__ import annotations

import csv
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from pocketgraph.datasets.text_decoding import UTF_16_MARKS, decoded
from pocketgraph.errors import FormatError, UsageError, did_you_mean, option
from pocketgraph.formats.files import opened, unreadable
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.math.elementwise import sigmoid
from pocketgraph.kernels.probabilities import are_probabilities, are_shares, squared_errors
from pocketgraph.pages.quantities import counted

MAX_LABEL_BYTES = 1 << 24
LABEL_MAP_ITEM = re.compile(r"^\s*item\s*:?\s*\{([^{}]*)\}\s*?$", re.MULTILINE)
LABEL_MAP_FIELD = re.compile(r"\b(\w+)\s*:\s*(\"[^\"]*\"|'[^']*'|)(\d*)")
LABEL_ENDINGS = (".txt", ".pbtxt", ".csv", ".json")
NO_LABEL = "???"
MOST_ALIKE = 2  # names of a table of classes: ImageNet has two kinds of cranes
NAME_COLUMNS = ("display_name", "name", "label", "class")
PLACE_COLUMNS = ("index", "id")
NAME_KEYS = ("labels", "id2label")  # of JSON that holds other settings, too
LARGEST_CLASS = 2.0**53
"""From which on a float does not tell whole numbers apart."""
_NUMBERS_OF_TWO = ([0, 1], [-1, 1])  # what data call two classes, the second as a hinge loss and a tanh have it


def label_of(folder: str) -> str:
    """The label of a folder: its name in small letters, whatever is no letter or digit, of any script, being a blank.

    A name without any is the label itself; bytes that are no text are written as Python escapes them.
    """
    name = os.fsencode(os.path.basename(folder)).decode("utf-8", "backslashreplace")
    letters = (
        letter if unicodedata.category(letter)[0] in "LMN" else " "
        for letter in unicodedata.normalize("NFC", name).lower()
    )
    return " ".join("".join(letters).split()) or name


def indices(classes: Sequence[str], names: Sequence[str] | None, scores: int) -> list[int] | None:
    """The index of each sample's class among a model's scores; None when that cannot be told.

    Args:
        classes: the name of each sample's class; empty when the data do not tell.
        names: the name of each class, in the order of the model's scores; None when nothing was said.
        scores: how many scores the model gives.

    Raises:
        UsageError: there are fewer names than scores, a sample's class is not among those of the scores, or two have
            its name.
    """
    if names is not None and len(names) < scores:
        raise UsageError(
            f"the labels file has {counted(len(names), 'line')}, but the model gives {scores} scores",
            hint=f"empty lines at its end are none; write {NO_LABEL} for a class without a name",
        )
    if not classes:
        return None
    are_numbers = all(name.isdecimal() and int(name) < scores for name in classes)
    if names is None:
        if are_numbers:
            return [int(name) for name in classes]
        known = sorted(set(classes), key=lambda name: (int(name) if name.isdecimal() else -1, name))
        return [known.index(name) for name in classes] if len(known) == scores else None
    wanted, called = [name.strip().lower() for name in names], {name: name.lower() for name in {*classes}}
    if not {*called.values()} <= {*wanted}:
        wanted, called = _by_labels(wanted, called)
    index = {name: position for position, name in enumerate(wanted)}
    needed = sorted({*called.values()})
    missing = [name for name in needed if name not in index]
    if missing and are_numbers:
        return [int(name) for name in classes]
    without = f"leave {option('labels')} out to judge without"
    if missing:
        hint = " ".join(filter(None, (did_you_mean(missing[0], names), _of_no_other(names))))
        if all(map(str.isdecimal, classes)):
            missing, hint = [max(missing, key=int)], f"classes by number are 0 to {scores - 1} here;"
        raise UsageError(f"the labels file does not have the class '{missing[0]}'", hint=f"{hint} {without}".strip())
    counts = Counter(wanted)
    twice = next((name for name in needed if counts[name] > 1), None)
    if twice is not None:
        raise UsageError(f"the labels file has the class '{twice}' {counts[twice]} times", hint=without)
    beyond = next((name for name in needed if index[name] >= scores), None)
    if beyond is not None:
        raise UsageError(
            f"the class '{beyond}' is line {index[beyond] + 1} of {len(names)} in the labels file, but the model gives "
            f"{scores} score{'s' * (scores != 1)}",
            hint="give the labels of this model"
            if scores > 1
            else f"{option('outputs')} names that of a sigmoid, which tells two classes apart; or {without}",
        )
    return [index[called[name]] for name in classes]


def _of_no_other(names: Sequence[str]) -> str:
    """What to call samples of what is none of the other classes, where a label such as ``_unknown_`` stands for it."""
    rest = next((name for name in names if "unknown" in name.lower()), "")
    return f"'{rest}' is the class of samples that are none of the others;" if rest else ""


def _by_labels(wanted: list[str], called: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Both as the labels of folders, which ``retrain`` and retrain.py of TensorFlow write, or the lines without the
    numbers before them (``0 tench``, ``0: tench``), or as the id that ImageNet's have (``n01440764 tench``), if each
    class is then found and no two become one."""
    for form in (label_of, _original_label, _behind_number, _synset):
        labels, by_label = [form(name) for name in wanted], {name: form(name) for name in called}
        found = {*by_label.values()}
        if found <= {*labels} and len(found) == len({*called.values()}):
            return labels, by_label
    return wanted, called


def _original_label(folder: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", folder.lower()).strip()


def _behind_number(line: str) -> str:
    return label_of(re.sub(r"^\d+(\s*[:,]\s*|\s+)(?=\S)", "", line))


def _synset(line: str) -> str:
    return re.sub(r"^(n\d{8})\b.*$", r"\1", line)


def two_classes(classes: Sequence[str], names: Sequence[str] | None) -> list[str] | None:
    """The names of two classes that one score may tell apart, that of the class which it speaks for last; None where
    neither the names nor the samples' classes, names or numbers 0 and 1 or -1 and 1, say that there are two.

    Args:
        classes: the name of each sample's class.
        names: the name of each class, in the order of the scores; None when nothing was said.
    """
    if names is not None:
        return list(names) if len(names) == 2 else None
    found = sorted(set(classes))
    numbers = numbers_of(found) if len(found) == 2 else None
    if numbers is not None:
        found.sort(key=float)
        return found if sorted(numbers.ravel()) in _NUMBERS_OF_TWO else None
    return found if len(found) == 2 and not any(map(str.isdecimal, found)) else None


def shares_of_two(score: Array, *, is_logit: bool) -> Array:
    """The shares of two classes, [2], where a model gives one score for the second: its share, or its logit."""
    value = score.reshape(-1)[0]
    share = sigmoid(np.asarray(value)) if is_logit else np.clip(value, 0, 1)
    return np.stack([1 - share, share])


def are_logits(scores: Array, right: Sequence[int] | Array, *, may_be: bool) -> bool:
    """Whether single scores are logits of the second of two classes, which are above 0 for it, and no shares, which are
    above 0.5: where they may be, or leave the range of shares, by which of both is nearer to the classes.

    Args:
        scores: of all samples, [samples].
        right: the index of each sample's class; empty where nothing tells.
        may_be: whether what gives the scores may give logits.
    """
    if not may_be and are_shares(scores, rounding=0):
        return False
    as_shares, as_logits = squared_errors(scores, np.asarray(right) == 1) if len(right) else (0.0, 0.0)
    return as_logits <= as_shares


def of_two(scores: Array, names: Sequence[str] | None, *, is_logit: bool = False) -> Array:
    """The shares of two classes, [2], where a model gives one score for the second of two named classes: a sigmoid's,
    or a logit, as all scores beyond 0 to 1 are; else the scores themselves."""
    if not tells_two(scores, names):
        return scores
    return shares_of_two(scores, is_logit=is_logit or not 0 <= scores.reshape(-1)[0] <= 1)


def tells_two(scores: Array, names: Sequence[str] | None) -> bool:
    """Whether scores are one number, for the second of two named classes."""
    return scores.size == 1 and names is not None and len(names) == 2 and scores.dtype.kind == "f"


def classes_and_numbers(labels: Array) -> tuple[list[str], Array | None]:
    """(classes, numbers) that an array of labels holds, the samples along its first axis; either may be none.

    Whole numbers and names are classes, and so is the largest of each row where rows are probabilities (or a one among
    zeros). Numbers of any kind may also be what a model should give.
    """
    rows = labels.reshape(len(labels), -1)
    numbers = rows.astype(np.float64) if labels.dtype.kind in "fiub" else None
    if rows.shape[1] > 1:
        is_class = numbers is not None and are_probabilities(numbers)
        return ([str(best) for best in rows.argmax(axis=1)] if is_class else []), numbers
    flat = rows[:, 0]
    if flat.dtype.kind == "f":
        if not (np.array_equal(flat, np.rint(flat)) and np.abs(flat).max(initial=0) < LARGEST_CLASS):
            return [], numbers
        flat = flat.astype(np.int64)
    if flat.dtype.kind == "S":
        return [label.decode("utf-8", "backslashreplace") for label in flat.tolist()], None
    return [str(label) for label in flat], numbers


def numbers_of(classes: Sequence[str]) -> Array | None:
    """Classes that are all numbers, float64 [samples, 1]; None when one is not."""
    try:
        return np.array([[float(name)] for name in classes]) if classes else None
    except ValueError:
        return None


def listed_labels(text: str) -> list[str]:
    """The names that a text has with commas between them; none where it is the path of a file, or looks like one."""
    is_path = os.path.exists(text) or os.sep in text or os.path.splitext(text)[1].lower() in LABEL_ENDINGS
    return [name.strip() for name in text.split(",")] if "," in text and not is_path else []


def read_labels(path: str | os.PathLike[str], *, is_named: bool = True) -> list[str]:
    """The lines of a labels file, blanks at their ends dropped; empty lines at the end of the file are none. Also the
    names of a list, see ``listed_labels``.

    Of a label map, as the Object Detection API has them (``item { id: 1 name: 'cat' }``), of JSON, see ``_of_json``,
    and of a table with a column of names, as YAMNet's ``index,mid,display_name``, the names at the places that their
    numbers say, and ``???`` where no number is.

    Args:
        path: of the file, or a list.
        is_named: whether the caller names this file for its labels; of one that was found, JSON may be settings.

    Raises:
        FormatError: the file is missing, too large for labels, not text in UTF-8 or UTF-16, or JSON or a map of
            something else, or a table of samples.
    """
    place = os.fspath(path)
    if listed := listed_labels(place):
        return listed
    try:
        with opened(place) as file:
            data = file.read(MAX_LABEL_BYTES + 1)
    except OSError as error:
        raise unreadable("the labels", place, error) from error
    if len(data) > MAX_LABEL_BYTES or (b"\0" in data and not data.startswith(UTF_16_MARKS)):
        raise FormatError("this is not a labels file, which has one name a line", where=place)
    text = decoded(data, "labels file", place)
    items = LABEL_MAP_ITEM.findall(text)
    if items and not LABEL_MAP_ITEM.sub("", text).strip():
        return _of_label_map(items, place)
    if place.lower().endswith(".json"):
        return _of_json(text, place, is_named=is_named)
    names = _of_table(text) if place.lower().endswith(".csv") else []
    if max(Counter(name for name in names if name not in ("", NO_LABEL)).values(), default=0) > MOST_ALIKE:
        raise FormatError(
            "this table tells the class of samples; give the name of each class, a line each", where=place
        )
    return names or [line.strip() for line in text.rstrip().splitlines()]


def class_name(labels: Sequence[str], index: int) -> str:
    """The label of a class; one beyond the labels is called by its index."""
    return labels[index] if index < len(labels) else f"class {index}"


def best_classes(scores: Array, labels: Sequence[str], top: int, *, is_logit: bool = False) -> list[tuple[int, float]]:
    """The highest scores with their classes, best first; of equal ones the lower class comes first. ``is_logit`` is of
    one score, see ``of_two``."""
    given = of_two(scores, labels, is_logit=is_logit)
    return [(int(i), float(given[i])) for i in np.argsort(-given.astype(np.float64), kind="stable")[:top]]


def _of_label_map(items: Sequence[str], place: str) -> list[str]:
    """The names of a label map's items by their ids."""
    named: dict[int, str] = {}
    for item in items:
        fields = {key: quoted[1:-1] or number for key, quoted, number in LABEL_MAP_FIELD.findall(item)}
        name = fields.get("display_name") or fields.get("name")
        if not fields.get("id", "").isdecimal() or name is None or int(fields["id"]) > MAX_LABEL_BYTES:
            raise FormatError(f"an item of this label map has no id or no name: {item.strip()[:60]}", where=place)
        named[int(fields["id"])] = name
    return _placed(named)


def _of_json(text: str, place: str, *, is_named: bool) -> list[str]:
    """The names in JSON: a list; by their indices (``imagenet_class_index.json`` has pairs, whose last is the name), or
    with all of 0 to n - 1 or 1 to n (as Keras' ``class_indices``); or any of these as the ``labels`` or ``id2label`` of
    an object, as they have to be unless the caller names the file."""
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            held = [found.get(key) for key in NAME_KEYS]
            found = next((one for one in held if one and isinstance(one, (list, dict))), found if is_named else None)
        if isinstance(found, list):
            found = {str(at): name for at, name in enumerate(found)}
        elif len(found) > 1 and _are_places(list(found.values())):
            found = {str(at): name for name, at in found.items()}
        named = {int(at): name[-1] if isinstance(name, list) else name for at, name in found.items()}
        if named and all(isinstance(name, str) for name in named.values()):
            return _placed(named)
    except (ValueError, TypeError, AttributeError, IndexError, RecursionError):
        pass
    raise FormatError(
        "this JSON has no names of classes", where=place, hint='it should be ["cat", "dog"] or {"0": "cat", "1": "dog"}'
    )


def _are_places(values: Sequence[object]) -> bool:
    """Whether values are the whole numbers from 0 or 1 on, in any order: other numbers are settings or counts."""
    places = sorted(at for at in values if type(at) is int)  # a bool is none
    return len(places) == len(values) and places in ([*range(len(values))], [*range(1, len(values) + 1)])


def _of_table(text: str) -> list[str]:
    """The names in a table's column of names, at the places that a column of numbers says, where empty rows are none;
    none of no such table."""
    try:
        first, *rows = [[cell.strip() for cell in row] for row in csv.reader(text.strip().splitlines())]
        heads = [head.lower() for head in first]
        name = next(heads.index(head) for head in NAME_COLUMNS if head in heads)
        place = next((heads.index(head) for head in PLACE_COLUMNS if head in heads), None)
        if place is None:
            return _placed({at: row[name] if row else "" for at, row in enumerate(rows)})
        return _placed({int(row[place]): row[name] for row in rows if row})
    except (ValueError, IndexError, StopIteration, csv.Error):
        return []


def _placed(named: Mapping[int, str]) -> list[str]:
    """The names at their places, each in one line as files of labels have it, and ``???`` between them."""
    if not 0 <= min(named) <= max(named) <= MAX_LABEL_BYTES:
        raise ValueError("a class is numbered that no model has")
    return [" ".join(named.get(at, NO_LABEL).split()) for at in range(max(named) + 1)]
