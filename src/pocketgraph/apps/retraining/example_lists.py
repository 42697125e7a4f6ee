"""Which photos are of which class, and which of them train, validate and test: as TensorFlow's retrain.py decides."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pocketgraph.datasets.class_labels import label_of
from pocketgraph.datasets.file_lists import (
    BACKGROUND_NOISE,
    HIDDEN,
    RECORDINGS,
    SUFFIXES,
    files_in,
    is_recording,
    told_beside,
    told_deeper,
    unread,
)
from pocketgraph.datasets.sample_reading import Notify, unheard
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.formats.files import near

MOST_OF_A_CLASS = (1 << 27) - 1
"""What the hash of a name is reduced to; retrain.py's MAX_NUM_IMAGES_PER_CLASS."""
FEW = 20
PARTS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing"})
"""Folders of these names hold parts of a data set, and the folders of the classes are inside."""
CLASSES_INSIDE = "give a folder whose folders are the classes, as {} may be"
CATEGORIES = ("training", "testing", "validation")


@dataclass(frozen=True)
class Example:
    """One file.

    Attributes:
        path: as it is opened.
        label: of its class.
        category: "training", "testing" or "validation".
        key: what it shares with those that must stay on its side; "" for its path before ``_nohash_``.
    """

    path: str
    label: str
    category: str
    key: str = ""

    @property
    def group(self) -> str:
        """What examples that stay together have in common."""
        return self.key or self.path.partition("_nohash_")[0]


def split_share(path: str) -> float:
    """Where a file lies between 0 and 100, by its path as it is given alone, so that it never changes sides.

    What follows ``_nohash_`` does not count: photos of one thing stay together. SHA-1, as retrain.py of TensorFlow 1.2
    and later.
    """
    key = re.sub(r"_nohash_.*$", "", path)
    number = int(hashlib.sha1(key.encode("utf-8", "surrogateescape")).hexdigest(), 16)
    return number % (MOST_OF_A_CLASS + 1) * (100.0 / MOST_OF_A_CLASS)


def category_of(path: str, testing: float, validation: float) -> str:
    """The category of a file, by the percentages of the two smaller ones.

    Of a recording the name alone counts, as in input_data.py of speech_commands, so that all words of a speaker, who is
    named before ``_nohash_``, are on one side.
    """
    share = split_share(os.path.basename(path) if is_recording(path) else path)
    if share < validation:
        return "validation"
    return "testing" if share < testing + validation else "training"


def examples_of(
    folder: str,
    *,
    testing: float = 10,
    validation: float = 10,
    suffixes: Sequence[str] = SUFFIXES,
    warn: Notify = unheard,
) -> tuple[list[str], list[Example]]:
    """The labels in order, and every example of a folder that has one folder a class.

    Args:
        folder: its sub-folders' names are the classes.
        testing, validation: percentages.
        suffixes: of the files that count.
        warn: told of classes that are small or empty, and of files that lie elsewhere than in the folder of a class.

    Raises:
        FormatError: there is no such folder.
        UsageError: there are not two classes, or the percentages leave nothing.
    """
    if not os.path.isdir(folder):
        is_file = os.path.exists(folder)
        hint = "this is a file; give the folder that has one folder a class" if is_file else near(folder)
        raise FormatError(f"Image directory '{folder}' not found.", hint=hint)
    check_shares(testing, validation)
    if suffixes is RECORDINGS and os.path.isdir(os.path.join(folder, BACKGROUND_NOISE)):
        warn(f"'{BACKGROUND_NOISE}' is no word and is left out; clips in a folder _silence_ are told apart from words")
    if beside := told_beside(folder, suffixes):
        warn(beside)
    found: dict[str, list[Example]] = {}
    deep = ""
    for name in sorted(os.listdir(folder)):
        inner = os.path.join(folder, name)
        if not os.path.isdir(inner) or name.startswith(HIDDEN):
            continue
        found_here = files_in(inner)
        files = [path for path in found_here if path.lower().endswith(tuple(suffixes))]
        if others := unread(found_here):
            warn(f"'{name}': {others}")
        if deeper := told_deeper(inner, files):
            warn(deeper)
            deep = deep or inner
        if not files:
            warn(f"'{name}' has no examples and is left out")
            continue
        is_reserved = suffixes is RECORDINGS and name.startswith("_") and name.endswith("_")  # no word: _silence_
        label = name.lower() if is_reserved else label_of(name)
        if label in found:
            raise UsageError(f"two folders have the label '{label}'", where=inner, hint="rename one")
        if len(files) == 1:
            warn(f"'{name}' has one example: it cannot be cross-validated, and is told by that alone")
        elif len(files) < FEW:
            warn(f"'{name}' has less than {FEW} examples, which may cause issues")
        found[label] = [Example(path, label, category_of(path, testing, validation)) for path in files]
    check_classes(folder, found, deep)
    if len(found) == 1:
        raise UsageError(
            f"Only one valid folder of images found at {folder} - multiple classes are needed for classification.",
            hint=CLASSES_INSIDE.format(deep) if deep else "",
        )
    for label, entries in found.items():
        check_counts(label, entries)
    return list(found), [entry for entries in found.values() for entry in entries]


def check_classes(folder: str, labels: Collection[str], deep: str) -> None:
    """Refuses a folder without ``labels``, or of the parts of a data set, of which ``deep`` has folders inside.

    Raises:
        UsageError: it is such.
    """
    if not labels or (deep and PARTS.issuperset(labels)):
        hint = CLASSES_INSIDE.format(deep) if deep else "make one folder a class in it"
        raise UsageError(f"No valid folders of images found at {folder}", hint=hint)


def check_shares(testing: float, validation: float) -> None:
    """Raises UsageError when the percentages leave nothing to train on."""
    if testing < 0 or validation < 0 or testing + validation >= 100:
        raise UsageError(f"{testing:g} and {validation:g} per cent leave nothing to train on")


def check_counts(label: str, entries: Sequence[Example]) -> None:
    """Raises UsageError when a class has nothing to train on."""
    if all(entry.category != "training" for entry in entries):
        raise UsageError(
            f"Label {label} has no images in the category training.",
            hint=f"add photos of it, or lower {option('testing_percentage')} and {option('validation_percentage')}",
        )


def by_category(examples: Sequence[Example]) -> Mapping[str, list[int]]:
    """The places of the examples of each category."""
    return {name: [i for i, entry in enumerate(examples) if entry.category == name] for name in CATEGORIES}
