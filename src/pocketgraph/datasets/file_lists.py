"""Pictures and recordings that a folder or a list names, with the class of each where it is told."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from io import TextIOWrapper

from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats.files import near, opened, reason, unreadable
from pocketgraph.pages.quantities import counted

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")
RECORDINGS = (".wav",)
TEXTS = (".txt",)
UNREAD = {
    "JPEG": (".heic", ".heif", ".avif", ".tif", ".tiff", ".jp2", ".jxl", ".dng"),
    "WAV": (".mp3", ".m4a", ".aac", ".ogg", ".opus", ".flac", ".webm"),
}
"""Endings of pictures and recordings that are not read, by what to make of them."""
LISTED = "a list of files is a .txt file: on each line a path, seen from its folder, a tab and the class"
BACKGROUND_NOISE = "_background_noise_"
"""The folder of long noises in data sets of words, as of Speech Commands: no word, and no class."""
HIDDEN = (".", "__MACOSX", BACKGROUND_NOISE)
"""How files and folders begin that hold no examples: a system put them beside those of the user, or they are noise."""


def is_recording(path: str) -> bool:
    """Whether a file's name is that of a recording."""
    return path.lower().endswith(RECORDINGS)


def names_in(folder: str, suffixes: Sequence[str]) -> list[str]:
    """The names with these endings in a folder, in order, but hidden ones, folders, and pipes, which may never end."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if not entry.name.startswith(HIDDEN)
            and entry.name.lower().endswith(tuple(suffixes))
            and (entry.is_file() or not os.path.exists(entry.path))  # of links that lead nowhere is told
        )


def told_beside(folder: str, suffixes: Sequence[str]) -> str:
    """Says how many files with these endings lie beside the folders of the classes; "" for none."""
    if not (loose := names_in(folder, suffixes)):
        return ""
    verb = "is" if len(loose) == 1 else "are"
    return f"{counted(len(loose), 'file')} beside the folders of the classes, such as {loose[0]}, {verb} left out"


def told_deeper(folder: str, files: Sequence[str]) -> str:
    """Says how many of the files of a class lie in folders inside its own, which retrain.py leaves out; "" for none."""
    deep = [file for file in files if os.path.dirname(file) != folder]
    if not deep:
        return ""
    name, verb = os.path.basename(folder), "is" if len(deep) == 1 else "are"
    inside = os.path.relpath(deep[0], folder)
    return f"{counted(len(deep), 'file')} in folders inside '{name}', such as {inside}, {verb} of this class"


def files_in(folder: str, hidden: tuple[str, ...] = HIDDEN) -> list[str]:
    """The files of a folder and of those inside, in order; links are followed, names that begin so are left out, as
    are pipes and devices.

    Raises:
        FormatError: one of the folders cannot be read.
    """

    def refused(error: OSError) -> None:
        raise FormatError(f"the folder cannot be read: {reason(error)}", where=str(error.filename)) from None

    found: list[str] = []
    seen: set[str] = set()
    for place, inner, names in os.walk(folder, onerror=refused, followlinks=True):
        if os.path.realpath(place) in seen:  # a link that leads back
            inner.clear()
            continue
        seen.add(os.path.realpath(place))
        inner[:] = sorted(name for name in inner if not name.startswith(hidden))
        found += [os.path.join(place, name) for name in sorted(names) if not name.startswith(hidden)]
    return [path for path in found if os.path.isfile(path) or not os.path.exists(path)]  # a pipe may never end


def of_folder(name: str, *, without_strays: bool = False) -> tuple[list[str], list[str]]:
    """The pictures of a folder and of those inside, or else the recordings, and the class of each; all classes in turn.

    Args:
        name: of the folder.
        without_strays: leave out those beside the folders of the classes, where most are in two or more of these; no
            class is told where one file has none.

    Raises:
        UsageError: there are neither.
    """
    found_here = files_in(name)
    files = [path for path in found_here if path.lower().endswith(SUFFIXES)] or list(filter(is_recording, found_here))
    if not files:
        hint = unread(found_here) or f"it may hold {', '.join((*SUFFIXES, *RECORDINGS))}"
        raise UsageError("there are no pictures in this folder, nor recordings", where=name, hint=hint)
    return _with_classes(name, files, without_strays)


def unread(paths: Iterable[str]) -> str:
    """What to do with pictures and recordings of kinds that are not read; "" where there are none."""
    for path in paths:
        for form, endings in UNREAD.items():
            if path.lower().endswith(endings):
                name = os.path.basename(path)
                return f"files such as {name} are of kinds that are not read; make {form} files of them"
    return ""


def texts_of_folder(name: str, *, without_strays: bool = False) -> tuple[list[str], list[str]]:
    """The text files of a folder and of those inside, and the class of each; all classes in turn; see ``of_folder``.

    Raises:
        UsageError: there are none.
    """
    found_here = files_in(name)
    files = [path for path in found_here if path.lower().endswith(TEXTS)]
    if sum(is_picture(path) or is_recording(path) for path in found_here) > len(files):
        raise UsageError("this folder has pictures or recordings, and the model takes texts", where=name)
    if not files:
        raise UsageError("there are no texts in this folder", where=name, hint="it may hold .txt files, a text each")
    return _with_classes(name, files, without_strays)


def _with_classes(name: str, files: list[str], without_strays: bool) -> tuple[list[str], list[str]]:
    """Files and their classes, the folders inside ``name``, all classes in turn; no classes where one is in none."""
    inside = {path: os.path.relpath(os.path.dirname(path), name).split(os.sep)[0] for path in files}
    inner = [path for path in files if inside[path] != "."]
    if without_strays and 2 * len(inner) > len(files) and len({inside[path] for path in inner}) > 1:
        files = inner
    classes = [inside[path] for path in files] if len(inner) == len(files) else []
    return mixed(files, classes), mixed(classes, classes)


def mixed(items: list[str], classes: list[str]) -> list[str]:
    """The items with the classes in turn, so that the first few are of all classes."""
    if not classes:
        return items
    seen: dict[str, int] = {}
    turn = []
    for name in classes:
        turn.append(seen.get(name, 0))
        seen[name] = turn[-1] + 1
    return [items[index] for index in sorted(range(len(items)), key=lambda index: (turn[index], index))]


def is_picture(path: str) -> bool:
    """Whether a file's name is that of a picture."""
    return path.lower().endswith(SUFFIXES)


def check_is_there(source: object, what: str = "the data") -> None:
    """Refuses a path of nothing, so that it is said before a model is read; what is no path is there.

    Raises:
        FormatError: there is no such file or folder.
    """
    if isinstance(source, (str, os.PathLike)):
        try:
            os.stat(source)
        except OSError as error:
            raise unreadable(what, source, error) from None


def of_list(name: str) -> tuple[list[str], list[str]]:
    """The files that the lines of a text file name, and the class of each; no classes where none is told.

    Raises:
        UsageError: some have a class, others have not.
        FormatError: the list cannot be read, or a file in it is not there.
    """
    try:
        with TextIOWrapper(opened(name), encoding="utf-8-sig") as file:
            lines = {
                number: line.rstrip("\n")
                for number, line in enumerate(file, 1)
                if line.strip() and not line.startswith("#")
            }
    except OSError as error:
        raise unreadable("the data", name, error) from None
    except UnicodeDecodeError:
        raise FormatError("this is no folder, .npz file or list of pictures", where=name) from None
    files, classes = [], []
    for number, line in lines.items():
        path, _, label = line.partition("\t")
        if not label and not os.path.exists(os.path.join(os.path.dirname(name), path)):
            path, _, label = line.rpartition(" ") if " " in line else (line, "", "")
        files.append(os.path.join(os.path.dirname(name), path.strip()))
        if not os.path.lexists(files[-1]):
            if line.startswith(("{", "[")):
                raise FormatError("this looks like JSON, and is no list of files", where=name, hint=LISTED)
            hint = near(files[-1]) or "a list has the path of a picture or recording on each line, seen from its folder"
            raise FormatError(f"line {number}: there is no file '{path.strip()}'", where=name, hint=hint)
        classes.append(label.strip())
    named = [label for label in classes if label]
    if named and len(named) != len(files):
        raise UsageError(f"{len(files)} pictures are listed, but only {len(named)} with a class", where=name)
    return files, classes if named else []
