"""Says what a file, directory or checkpoint prefix is, and what one can do with it next."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from itertools import islice

from pocketgraph.errors import FormatError, path_of
from pocketgraph.formats.checkpoints.checkpoint_state import prefixes
from pocketgraph.formats.content import Kind, of_content
from pocketgraph.formats.files import PathLike, mapped, near
from pocketgraph.formats.meta_graph import saved_model_file

__all__ = ["CHECKPOINTS", "Identity", "Kind", "identify"]

CHECKPOINTS = frozenset((
    Kind.CHECKPOINT_V1, Kind.CHECKPOINT_V2, Kind.CHECKPOINT_INDEX, Kind.CHECKPOINT_STATE, Kind.CHECKPOINT_DIRECTORY,
    Kind.CHECKPOINT_DATA,
))  # fmt: skip
MODELS = frozenset((
    Kind.GRAPH_DEF, Kind.GRAPH_DEF_TEXT, Kind.META_GRAPH, Kind.META_GRAPH_TEXT, Kind.SAVED_MODEL,
    Kind.CHECKPOINT_DIRECTORY, Kind.MEMMAPPED, Kind.TFLITE, Kind.ONNX, Kind.HDF5, Kind.KERAS_JSON, Kind.KERAS,
    Kind.TENSORFLOW_JS, Kind.TENSORFLOW_JS_LAYERS,
))  # fmt: skip
"""What commands take as a model as it is."""
MODEL_SUFFIXES = (".pb", ".pbtxt", ".meta", ".bytes", ".tflite", ".onnx")
KERAS_SUFFIXES = (".keras", ".h5", ".hdf5")
BESIDE_MODELS = ("keras_metadata.pb", "fingerprint.pb")
"""Files of SavedModels that hold no graph."""
MOST_NAMED = 3  # of the models in a directory
MOST_LOOKED_AT = 10_000  # files and folders in a directory and below it: it may be one of photos, or a whole disk


@dataclass(frozen=True)
class Identity:
    """What lies at a path.

    Attributes:
        kind: what it is.
        next: what to type next.
    """

    path: str
    kind: Kind
    next: str

    @property
    def description(self) -> str:
        """What it is in words, as in "a SavedModel"."""
        return str(self.kind.value[0])

    def refusal(self, wanted: str = "a GraphDef") -> FormatError:
        """The error for somebody who expected something else here.

        Args:
            wanted: what that was, with its article.
        """
        if self.kind is Kind.MISSING:
            return FormatError("there is no such file", where=self.path, hint=self.next)
        return FormatError(f"this is {self.description}, not {wanted}", where=self.path, hint=self.next)


def identify(path: PathLike) -> Identity:
    """What lies at a path, and what one can do with it next.

    Args:
        path: of a file, a directory, or a checkpoint's prefix; it may be missing.

    Raises:
        FormatError: it is there but cannot be read.
    """
    name = path_of(path)
    if os.path.isdir(name):
        kind = of_directory(name)
    elif os.path.exists(name):
        kind = of_content(mapped(name), name)
    else:
        kind = of_missing(name)
        if kind is Kind.MISSING:
            return Identity(name, kind, near(name))
    return identity_of(name, kind)


def model_at(path: str) -> str:
    """The model that a path means; else the path itself.

    That of one of its own files, as the directory has the values and assets. Of a directory that is no model and has
    one inside, as the version that an Estimator exports (``export/1700000000``), it is that: see ``sole_model``.
    """
    if os.path.isdir(path):
        return (of_directory(path) is Kind.DIRECTORY and sole_model(path)) or path
    folder = os.path.dirname(path) or "."
    is_file = os.path.isfile(path) and saved_model_file(folder) == os.path.join(folder, os.path.basename(path))
    return folder if is_file and identify(path).kind in (Kind.SAVED_MODEL_FILE, Kind.SAVED_MODEL_TEXT) else path


def identity_of(name: str, kind: Kind) -> Identity:
    """The identity of what lies at a path and is known to be of this kind."""
    if kind is Kind.DIRECTORY:
        return Identity(name, kind, inside(name) or kind.value[1])
    given = name
    if kind in (Kind.CHECKPOINT_INDEX, Kind.CHECKPOINT_DATA):
        given = re.sub(r"\.(index|data-\d+-of-\d+)$", "", name)
    return Identity(name, kind, kind.value[1].format(given, folder=os.path.dirname(name) or "."))


def of_directory(path: str) -> Kind:
    """What a directory is.

    Raises:
        FormatError: it may not be read.
    """
    if saved_model_file(path):
        return Kind.SAVED_MODEL
    try:
        names = os.listdir(path)
    except PermissionError:
        raise FormatError("this directory cannot be read: permission denied", where=path) from None
    except OSError:
        return Kind.DIRECTORY
    if "Manifest.json" in names and os.path.isdir(os.path.join(path, "Data", "com.apple.CoreML")):
        return Kind.CORE_ML
    if "checkpoint" in names or prefixes(path):
        return Kind.CHECKPOINT_DIRECTORY
    libraries = {name.removesuffix("_common.h") for name in names if name.endswith("_common.h")}
    if "Makefile" in names and any({f"{name}.h", f"{name}.c", f"{name}_test.c"} <= {*names} for name in libraries):
        return Kind.C_LIBRARY
    return Kind.DIRECTORY


def inside(path: str) -> str:
    """A hint that names the models in a directory or up to three levels below it; "" when there are none.

    Of exports whose folders are numbers, as their times or versions, the highest is the newest and comes first.
    """
    found = _inside(path, MODEL_SUFFIXES)[0] or _inside(path, KERAS_SUFFIXES)[0]
    numbered = sorted((name for name in found if os.path.basename(name).isdecimal()), key=_version)
    last = {os.path.dirname(name): name for name in numbered}
    newest = {
        name for name in last.values() if sum(os.path.dirname(one) == os.path.dirname(name) for one in numbered) > 1
    }
    found.sort(key=lambda name: name not in newest)
    said = [f"{name} (the newest)" if name in newest else name for name in found[:MOST_NAMED]]
    return f"give what is inside, such as {' or '.join(said)}" if found else ""


def sole_model(path: str) -> str:
    """The one model in a directory or up to three levels below it; "" when there is none, or are several, or may
    be, as not all was looked at."""
    found, is_all = _inside(path, MODEL_SUFFIXES + KERAS_SUFFIXES)
    return found[0] if is_all and len(found) == 1 else ""


def _version(path: str) -> int:
    return int(os.path.basename(path))


def _inside(path: str, suffixes: tuple[str, ...]) -> tuple[list[str], bool]:
    """The models that end so, or are directories, down to the depth where there are enough to name; and whether all
    files were looked at, which those of a very large directory are not."""
    found: list[str] = []
    level, left = [path], MOST_LOOKED_AT
    for _ in range(4):
        beside = list(islice((os.path.join(folder, name) for folder in level for name in _shown(folder)), left))
        left -= len(beside)
        level = []
        for name in sorted(beside):
            is_named = name.endswith(suffixes) and os.path.basename(name) not in BESIDE_MODELS
            if (is_named and os.path.isfile(name)) or _is_model(name):
                found.append(name)
            elif os.path.isdir(name):
                level.append(name)
        if len(found) >= MOST_NAMED:
            break
    return found, left > 0


def _shown(folder: str) -> list[str]:
    """What is in a folder, but for what begins with a dot; nothing where it cannot be seen."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _is_model(path: str) -> bool:
    """Whether a path is a model that its suffix does not tell: a directory, or one of TensorFlow.js."""
    if os.path.isdir(path):
        return of_directory(path) in (Kind.SAVED_MODEL, Kind.CHECKPOINT_DIRECTORY, Kind.CORE_ML)
    return (
        path.endswith(".json")
        and os.path.isfile(path)
        and of_content(mapped(path)) in (Kind.TENSORFLOW_JS, Kind.TENSORFLOW_JS_LAYERS)
    )


def of_missing(path: str) -> Kind:
    """What a path is that no file has: the prefix or pattern of a checkpoint's files, or nothing."""
    escaped = glob.escape(path)
    if os.path.isfile(path + ".index") or glob.glob(escaped + ".data-?????-of-?????"):
        return Kind.CHECKPOINT_V2
    if "?????-of-" in path and glob.glob(path):
        return Kind.CHECKPOINT_V1
    return Kind.CHECKPOINT_V1 if glob.glob(escaped + "-?????-of-?????") else Kind.MISSING
