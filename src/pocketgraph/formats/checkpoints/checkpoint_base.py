"""What checkpoints of both forms have in common: tensors by name, and slices put together to tensors."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError, GraphError, did_you_mean
from pocketgraph.formats.checkpoints import ordered_code
from pocketgraph.formats.checkpoints.bundle_proto import BundleEntry, Extent
from pocketgraph.graph import DType, Tensor

LARGEST_RANK = 32  # dimensions; NumPy's limit before version 2


class Checkpoint(Mapping[str, Tensor]):
    """The tensors of one checkpoint; see ``checkpoint_v2`` and ``checkpoint_v1`` for when files are read.

    Looking a tensor up raises KeyError for an unknown name, and FormatError when what the index says of it contradicts
    itself or its bytes are missing; ``tensor.numpy()`` raises FormatError when a byte is not what was saved.

    Attributes:
        prefix: the path without ``.index``; of the older form the file, or the path without ``-?????-of-?????``.
    """

    prefix: str
    _index: Mapping[str, Any]  # what it holds of each tensor

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self.prefix = os.fspath(prefix)
        self._tensors: dict[str, Tensor] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def entry(self, name: str) -> BundleEntry:
        """What the index says of one tensor; needs no data. Raises KeyError or FormatError."""
        if name not in self._index:
            hint = did_you_mean(name, self._index)
            raise KeyError(f"key {name} not found in checkpoint {self.prefix}" + (f"; {hint}" if hint else ""))
        return self._decode(self._index[name], name)

    @abstractmethod
    def _decode(self, value: Any, name: str) -> BundleEntry:
        """What the index says, as it holds it, decoded."""

    @abstractmethod
    def _stored(self, name: str, entry: BundleEntry) -> Tensor:
        """A tensor that was saved as a whole."""

    @abstractmethod
    def _slice_tensor(self, name: str, whole: BundleEntry, extents: Sequence[Extent]) -> Tensor:
        """One slice that was saved alone."""

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            tensor = self._tensors[name] = self._tensor(name, self.entry(name))
        return tensor

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor's shape, from the index alone."""
        return {name: self.entry(name).shape for name in self}

    @property
    def dtypes(self) -> dict[str, DType]:
        """Every tensor's element type, from the index alone."""
        return {name: self._dtype(self.entry(name), name) for name in self}

    def part(self, name: str, extents: Sequence[Extent]) -> Tensor:
        """One slice of a tensor, as a variable partition is restored: from its own bytes where it was saved alone.

        Args:
            extents: (start, length) a dimension; length -1 for all of it.

        Raises:
            KeyError: no tensor has this name.
            FormatError: the slice does not lie inside the tensor.
        """
        whole = self.entry(name)
        bounds = resolved(extents, whole.shape)
        if bounds is None:
            raise self._error(f"the slice {list(extents)} is not inside its shape {list(whole.shape)}", name)
        if bounds == [(0, size) for size in whole.shape]:
            return self[name]
        for stored in whole.slices:
            if resolved(stored, whole.shape) == bounds:
                return self._slice_tensor(name, whole, stored)
        cut = tuple(slice(start, start + length) for start, length in bounds)
        return Tensor(
            self._dtype(whole, name), tuple(length for _, length in bounds), read=lambda: self[name].numpy()[cut].view()
        )

    def _dtype(self, entry: BundleEntry, name: str) -> DType:
        try:
            dtype = DType.of(entry.dtype)
        except GraphError:
            raise self._error(f"its element type has the number {entry.dtype}, which is unknown here", name) from None
        if dtype.is_ref or entry.dtype == 0:
            raise self._error(f"its element type is {dtype.name}", name)
        return dtype

    def _tensor(self, name: str, entry: BundleEntry) -> Tensor:
        if entry.slices:
            return self._assembled(name, entry)
        return self._stored(name, entry)

    def _assembled(self, name: str, whole: BundleEntry) -> Tensor:
        """A partitioned tensor: its slices are put together when it is read."""
        shape = whole.shape
        dtype = self._dtype(whole, name)
        parts: list[tuple[tuple[slice, ...], Tensor]] = []
        covered = 0
        for extents in whole.slices:
            bounds = resolved(extents, shape)
            if bounds is None:
                raise self._error(f"the slice {list(extents)} is not inside its shape {list(shape)}", name)
            tensor = self._slice_tensor(name, whole, extents)
            covered += tensor.size
            parts.append((tuple(slice(start, start + length) for start, length in bounds), tensor))
        if covered != elements_of(shape):
            raise self._error(
                f"its slices hold {covered} of {elements_of(shape)} elements: does not have sufficient slices, or some "
                "overlap", name,
            )  # fmt: skip

        def read() -> np.ndarray[Any, Any]:
            values: np.ndarray[Any, Any] = np.empty(shape, dtype.numpy)
            filled = np.zeros(shape, bool)
            for place, tensor in parts:
                if filled[place].any():
                    raise self._error("two of its slices overlap", name)
                filled[place] = True
                values[place] = tensor.numpy()
            return values

        return Tensor(dtype, shape, read=read)

    def _error(self, what: str, name: str) -> FormatError:
        return FormatError(f"tensor '{name}': {what}", where=self.prefix)


def resolved(extents: Sequence[Extent], shape: Sequence[int]) -> list[Extent] | None:
    """Extents with "all of the dimension" written out, or None when they do not lie inside the shape."""
    if len(extents) != len(shape):
        return None
    bounds = []
    for (start, length), size in zip(extents, shape, strict=True):
        taken = size - start if length == ordered_code.FULL else length
        if start < 0 or taken < 0 or start + taken > size:
            return None
        bounds.append((start, taken))
    return bounds


def elements_of(shape: Sequence[int]) -> int:
    """How many elements a tensor of this shape has; exact whatever the sizes."""
    count = 1
    for size in shape:
        count *= size
    return count
