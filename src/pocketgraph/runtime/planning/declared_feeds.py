"""What a model declares of the tensors that were fed, kept for later processes.

A list, a number, text of NumPy's own type or an array of another type is converted to what the graph declares. With
that at hand a process that finds its plan need not read the model to convert (see Preparing.earlier).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.litert import cache
from pocketgraph.runtime.feeding.feeds import FeedSpec

WHAT = "declared feeds"


def keep(key: str, cache_dir: cache.Folder | None, specs: Mapping[str, FeedSpec]) -> None:
    """Notes what is declared, besides what was noted before; does nothing where the disk does not take it.

    Args:
        key: the model's digest.
        cache_dir: as for cache.directory.
        specs: what is declared of each tensor (``x:0``); those of no known type are left out.
    """
    folder = cache.directory(cache_dir)
    if folder is None or not key:
        return
    noted = _noted(key, folder)
    wanted = {name: [spec.dtype.name, spec.shape.dims] for name, spec in specs.items() if spec.dtype is not None}
    if wanted.keys() - noted.keys():
        cache.store(folder, cache.entry_name(key, WHAT), [], {"feeds": {**noted, **wanted}})


def converted(
    key: str, cache_dir: cache.Folder | None, values: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, np.ndarray[Any, Any]] | None:
    """The values as arrays of the declared types; None where these are not known, or all are such already.

    Args:
        key, cache_dir, names: as for ``find``.
        values: what is fed, by the same names.
    """
    specs = find(key, cache_dir, names)
    if specs is None:
        return None
    try:
        arrays = {name: spec.array(values[name]) for name, spec in specs.items()}
    except RunError:
        return None  # whoever looks at the graph will say so
    return arrays if any(arrays[name] is not value for name, value in values.items()) else None


def find(key: str, cache_dir: cache.Folder | None, names: Mapping[str, str]) -> dict[str, FeedSpec] | None:
    """What is declared of each of these tensors; None where that was not noted of all of them.

    Args:
        key, cache_dir: as for ``keep``.
        names: the caller's spelling of each tensor (``x:0``).
    """
    folder = cache.directory(cache_dir)
    noted = _noted(key, folder) if folder is not None and key else {}
    found: dict[str, FeedSpec] = {}
    try:
        for name, label in names.items():
            kind, dims = noted[name]
            found[name] = FeedSpec(Endpoint.of(name), label, DType.named(kind), Shape(dims))
    except (PocketgraphError, LookupError, TypeError, ValueError):  # damaged, or never fed before
        return None
    return found


def _noted(key: str, folder: str) -> dict[str, Any]:
    entry = cache.find(folder, cache.entry_name(key, WHAT))
    feeds = entry.about.get("feeds") if entry is not None else None
    return feeds if isinstance(feeds, dict) else {}
