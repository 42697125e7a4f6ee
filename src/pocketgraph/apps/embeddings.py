"""Photos as vectors: what a model makes of each at one of its tensors, kept in a file, and asked for the nearest."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.apps.retraining.base_model import cut_model
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks, content_digest
from pocketgraph.apps.retraining.example_lists import Example, check_classes
from pocketgraph.apps.retraining.photo_features import PhotoFeatures
from pocketgraph.datasets import file_lists
from pocketgraph.datasets.class_labels import label_of
from pocketgraph.datasets.sample_reading import Notify, unheard
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats.files import no_folder, write_atomically
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

KEYS = ("names", "labels", "vectors", "about")


@dataclass(frozen=True)
class Embeddings:
    """Vectors of photos.

    Attributes:
        names: of the photos.
        labels: the folder that each was in; "" for none.
        vectors: float32 [photos, size].
        tensor: what of the model they are.
        identity: of the model and of how pictures went in; vectors of another one are not compared with these.
        how: the options that pictures went in by.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    vectors: Array
    tensor: str
    identity: str
    how: dict[str, Any]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ``.npz`` file with ``names``, ``labels``, ``vectors`` and ``about`` (JSON)."""
        told = {"tensor": self.tensor, "identity": self.identity, "how": self.how}
        about = json.dumps(told, default=lambda value: np.asarray(value).tolist())
        made = io.BytesIO()
        np.savez(
            made,
            names=np.array(self.names, str),
            labels=np.array(self.labels, str),
            vectors=self.vectors,
            about=np.array(about),
        )
        write_atomically(path, made.getvalue())


def photos_in(folder: str, warn: Notify = unheard, *, has_labels: bool = False) -> list[Example]:
    """The photos of a folder, which have no label, and of the folders in it, whose names are the labels where it
    ``has_labels``, and of those inside these, of which ``warn`` is told.

    Raises:
        FormatError: there is no such folder.
        UsageError: there is no photo, or what should be labels are parts of a data set, as "train".
    """
    if not os.path.isdir(folder):
        raise no_folder(folder)
    found = [Example(os.path.join(folder, name), "", "") for name in file_lists.names_in(folder, file_lists.SUFFIXES)]
    names = [name for name in sorted(os.listdir(folder)) if not name.startswith(file_lists.HIDDEN)]
    inner = [(os.path.join(folder, name), label_of(name)) for name in names]
    deep: dict[str, str] = {}
    for place, label in inner:
        if os.path.isdir(place):
            files = [file for file in file_lists.files_in(place) if file_lists.is_picture(file)]
            found += [Example(file, label, "") for file in files]
            if deeper := file_lists.told_deeper(place, files):
                deep[place] = deeper
    if deep and has_labels:
        check_classes(folder, {one.label for one in found if one.label}, next(iter(deep)))
    for deeper in deep.values():
        warn(deeper)
    if not found:
        places = [folder, *(place for place, _ in inner if os.path.isdir(place))]
        hears = any(file_lists.is_recording(file) for place in places for file in os.listdir(place))
        hint = "there are recordings, which retrain and evaluate read; this reads photos" if hears else ""
        raise UsageError("there is no photo here, nor in the folders in it", where=folder, hint=hint)
    return found


def embed(
    graph: Graph,
    photos: str | os.PathLike[str] | Sequence[str],
    *,
    tensor: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
    **how: Any,
) -> Embeddings:
    """The vectors of photos.

    Args:
        graph: takes one picture.
        photos: a folder, of photos or of folders of photos, or paths.
        tensor: any tensor of the graph, read as one row; by default what a classifier's last layer with weights takes.
        progress: told how many photos were read.
        notify: told of photos that do not open, which are left out; without it they are errors.
        how: as in PictureModel.

    Raises:
        UsageError: the graph takes no pictures, its cut is not clear, or no photo opens.
        FormatError: a photo does not open, and nobody is told.
        GraphError: there is no such tensor.
    """
    if isinstance(photos, (str, os.PathLike)):
        folder = os.fspath(photos)
        examples = photos_in(folder, notify or unheard, has_labels=True)
    else:
        folder, examples = "", [Example(path, "", "") for path in photos]
    how = {name: value for name, value in how.items() if value is not None}
    cut, model = cut_model(graph, tensor, **how)
    bottlenecks = Bottlenecks(PhotoFeatures(model), content_digest(graph))

    def broken(error: FormatError) -> None:
        assert notify is not None
        notify(f"{error}; it is left out")

    kept, vectors = bottlenecks.all(examples, progress=progress, broken=None if notify is None else broken)
    if not kept:
        raise UsageError("none of the photos opens", where=folder)
    names = (os.path.relpath(entry.path, folder).replace(os.sep, "/") if folder else entry.path for entry in kept)
    labels = (entry.label for entry in kept)
    how.pop("threads", None)
    return Embeddings(tuple(names), tuple(labels), vectors[:, 0], cut.tensor, bottlenecks.identity, how)


def read_embeddings(path: str | os.PathLike[str]) -> Embeddings:
    """The vectors that ``Embeddings.save`` wrote.

    Raises:
        FormatError: this is no such file, or its parts do not go together.
    """
    place = os.fspath(path)
    try:
        with np.load(place, allow_pickle=False) as file:
            names, labels, vectors, about = (file[key] for key in KEYS)
        kept = json.loads(str(about))
        found = Embeddings(
            tuple(map(str, names)),
            tuple(map(str, labels)),
            np.asarray(vectors, np.float32),
            str(kept["tensor"]),
            str(kept["identity"]),
            dict(kept["how"]),
        )
    except FileNotFoundError:
        raise FormatError("there is no such file", where=place) from None
    except Exception:  # zip, numpy and json answer a damaged file each with exceptions of their own
        raise FormatError("this is no file of vectors", where=place, hint="pocketgraph embed makes them") from None
    if found.vectors.ndim != 2 or not len(found.names) == len(found.labels) == len(found.vectors):
        raise FormatError("names, labels and vectors do not go together", where=place)
    return found


def require_alike(known: Embeddings, asked: Embeddings, where: str = "") -> None:
    """Raises UsageError when two sets of vectors are not of the same tensor of the same model, fed alike."""
    if known.identity != asked.identity:
        raise UsageError(
            "these vectors are of another model, tensor or scaling",
            where=where,
            hint="embed both with the same model and options",
        )
