"""Shapes as graphs declare them: a rank or none, each dimension a size or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from pocketgraph.errors import GraphError

LAST_PRODUCER_WITHOUT_SCALARS = 21
"""Up to this version of a GraphDef, [] as the shape of a placeholder says that none is known."""


class Shape:
    """A possibly unknown shape.

    Attributes:
        dims: one entry a dimension, ``None`` where the size is unknown; ``None`` altogether when the rank is unknown.
    """

    __slots__ = ("dims",)
    dims: tuple[int | None, ...] | None

    def __init__(self, dims: Iterable[int | None] | None) -> None:
        """``-1`` is taken as unknown. ``Shape(None)`` has unknown rank, ``Shape(())`` is a scalar's."""
        if dims is None:
            object.__setattr__(self, "dims", None)
            return
        clean: tuple[int | None, ...] = tuple(dims)
        for size in clean:
            if type(size) is not int or size < 0:  # mostly none: then they are taken as they are
                clean = tuple([None if d is None or d == -1 else int(d) for d in clean])
                if any(d is not None and d < 0 for d in clean):
                    raise GraphError(f"a shape has a dimension below -1: {list(clean)}")
                break
        object.__setattr__(self, "dims", clean)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Shape does not change")

    @property
    def rank(self) -> int | None:
        """The number of dimensions, None when not even that is known."""
        return None if self.dims is None else len(self.dims)

    @property
    def is_known(self) -> bool:
        """Whether every dimension is known."""
        return self.dims is not None and None not in self.dims

    @property
    def known(self) -> tuple[int, ...]:
        """The dimensions of a fully known shape.

        Raises:
            GraphError: some dimension is not known.
        """
        if self.dims is None:
            raise GraphError("the rank is not known")
        if None in self.dims:
            raise GraphError(f"the shape {self} is not fully known")
        return cast("tuple[int, ...]", self.dims)

    @property
    def elements(self) -> int | None:
        """How many elements, or None when that is not known."""
        if not self.is_known:
            return None
        count = 1
        for size in self.known:
            count *= size
        return count

    def fits(self, other: Shape | tuple[int, ...]) -> bool:
        """Whether this shape and ``other`` can describe the same tensor."""
        theirs = other.dims if isinstance(other, Shape) else other
        if self.dims is None or theirs is None or self.dims == theirs:
            return True
        return len(self.dims) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, theirs, strict=True)
        )

    def __iter__(self) -> Iterator[int | None]:
        if self.dims is None:
            raise GraphError("the rank is not known")
        return iter(self.dims)

    def __len__(self) -> int:
        if self.dims is None:
            raise GraphError("the rank is not known")
        return len(self.dims)

    def __bool__(self) -> bool:
        return True  # a scalar's shape and an unknown one are shapes too

    def __getitem__(self, index: int) -> int | None:
        if self.dims is None:
            raise GraphError("the rank is not known")
        return self.dims[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self.dims == other.dims

    def __hash__(self) -> int:
        return hash(self.dims)

    def __repr__(self) -> str:
        """``[1,?,3]``, ``[]`` for a scalar, ``<unknown>`` when the rank is unknown."""
        if self.dims is None:
            return "<unknown>"
        return "[" + ",".join("?" if d is None else str(d) for d in self.dims) + "]"

    def __reduce__(self) -> tuple[type[Shape], tuple[tuple[int | None, ...] | None]]:
        return Shape, (self.dims,)


UNKNOWN = Shape(None)
SCALAR = Shape(())
