"""What an operation between the layers of a Keras model is called with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, of_one_type, pair
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import FLOAT


class OperationCall(NamedTuple):
    """What an operation is called with; tensors are values, all else as the file has it.

    ``given`` are arguments by place, ``named`` those by name and the settings of the operation.
    """

    writer: LayerWriter
    given: Sequence[Any]
    named: Mapping[str, Any]

    def argument(self, place: int, *names: str, default: Any = None) -> Any:
        """An argument by its place, or by one of the names that Keras 2 and 3 have for it."""
        return self.given[place] if place < len(self.given) else self.setting(*names, default=default)

    def setting(self, *names: str, default: Any = None) -> Any:
        """What is given by one of these names."""
        return next((self.named[name] for name in names if self.named.get(name) is not None), default)

    def tensor(self, place: int, *names: str, like: DType = FLOAT) -> KerasTensor:
        """An argument as a tensor; numbers become constants."""
        found = self.argument(place, *names)
        if isinstance(found, KerasTensor):
            return found
        if found is None or not isinstance(found, (int, float, list, np.ndarray)):
            raise self.writer.refuse(f"has no argument {' or '.join(names) or place + 1} that is read")
        return self.writer.const(found, "number", like)

    def operands(
        self, first: tuple[int, tuple[str, ...]], second: tuple[int, tuple[str, ...]], usual: DType = FLOAT
    ) -> list[KerasTensor]:
        """Two arguments, each by its place and names: numbers are of the type of the tensor beside them, and in Keras 3
        whole numbers beside floats become floats."""
        given = [self.argument(place, *names) for place, names in (first, second)]
        like = next((one.dtype for one in given if isinstance(one, KerasTensor)), usual)
        is_new = self.writer.model.is_keras_3
        numbers = [np.asarray(one) for one in given if not isinstance(one, KerasTensor)]
        if is_new and not like.is_floating and any(one.dtype.kind == "f" for one in numbers):
            like = self.writer.float_type
        made = [self.tensor(place, *names, like=like) for place, names in (first, second)]
        return of_one_type(self.writer, made) if is_new else made

    def axes(self, *names: str) -> list[int]:
        """The axes of the first tensor that an operation is for, all by default."""
        rank = len(self.tensor(0).dims)
        found = self.argument(1, *names)
        return list(range(rank)) if found is None else [axis % rank for axis in pair(found, 1)]


def parts(item: Any) -> Iterator[Any]:
    """What is in lists and tables, whose keys are read in their order."""
    if isinstance(item, (list, dict)):
        for one in item if isinstance(item, list) else (item[name] for name in sorted(item)):
            yield from parts(one)
    else:
        yield item
