"""What an operation between the layers of a Keras model is called with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.formats.keras.layer_writer import Dims, KerasTensor, LayerWriter, as_float, of_one_type, pair
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32

CHANNELS_LAST = ("NHWC", "channels_last")
NO_MATTER = ("name", "sorted", "fill_mode", "fill_value")
"""Settings that change no answer: unsorted elements have any order, and only padded resizing fills."""


@dataclass(frozen=True)
class OperationCall:
    """What an operation is called with; tensors are values, all else as the file has it.

    ``given`` are arguments by place, ``named`` those by name and the settings of the operation; ``read`` are the places
    and names that were asked for.
    """

    writer: LayerWriter
    given: Sequence[Any]
    named: Mapping[str, Any]
    read: set[int | str] = field(default_factory=set)

    @property
    def is_of_keras_2(self) -> bool:
        """Whether it is a function of TensorFlow, with the names and defaults of its arguments there."""
        return self.writer.kind in ("TFOpLambda", "SlicingOpLambda")

    def argument(self, place: int, *names: str, default: Any = None) -> Any:
        """An argument by its place, or by one of the names that Keras 2 and 3 have for it."""
        self.read.add(place)
        found = self.setting(*names, default=default)
        return self.given[place] if place < len(self.given) else found

    def setting(self, *names: str, default: Any = None) -> Any:
        """What is given by one of these names."""
        self.read.update(names)
        return next((self.named[name] for name in names if self.named.get(name) is not None), default)

    def check(self) -> None:
        """Makes sure that nothing was overlooked; what is False or None asks for nothing.

        Raises:
            FormatError: something was.
        """
        for place, value in (*enumerate(self.given), *self.named.items()):
            is_plain = isinstance(value, (str, int, float))
            if value is None or value is False or (is_plain and value in CHANNELS_LAST) or place in NO_MATTER:
                continue
            if place not in self.read:
                told = f"argument {place + 1}" if isinstance(place, int) else place
                said = f"has {told}={str(value)[:40]}" if is_plain else f"is given its {told}"
                raise self.writer.refuse(f"{said}, which is not read")

    def tensor(self, place: int, *names: str, like: DType = FLOAT) -> KerasTensor:
        """An argument as a tensor; numbers become constants."""
        found = self.argument(place, *names)
        if isinstance(found, KerasTensor):
            return found
        if found is None or not isinstance(found, (int, float, list, np.ndarray)):
            raise self.writer.refuse(f"has no argument {' or '.join(names) or place + 1} that is read")
        return self.writer.const(found, "number", like)

    def shape(self, place: int, *names: str, is_open: bool = False) -> tuple[list[int | KerasTensor], Dims]:
        """An argument that is a shape, whose sizes may be those of tensors, or open, and what is known of it."""
        given = self.argument(place, *names)
        told = given.sizes if isinstance(given, KerasTensor) else given
        told = [told] if isinstance(told, int) else told
        if not isinstance(told, list | tuple) or (None in told and not is_open):
            is_computed = isinstance(told, list | tuple) or isinstance(given, KerasTensor)
            what = "a shape that is computed" if is_computed else "no list of sizes"
            raise self.writer.refuse(f"takes {what}, which is not read")
        found = [one.sizes if isinstance(one, KerasTensor) and isinstance(one.sizes, int) else one for one in told]
        if any(isinstance(one, KerasTensor) and one.dtype is not INT32 for one in found):
            raise self.writer.refuse("takes sizes of other types than int32, which is not read")
        sizes = [one if isinstance(one, KerasTensor) else -1 if one is None else int(one) for one in found]
        return sizes, tuple(one if isinstance(one, int) and one >= 0 else None for one in sizes)

    def tensors(self, *names: str) -> list[KerasTensor]:
        """The first argument, several tensors, of which arrays become constants."""
        values = self.argument(0, *names, default=())
        if not isinstance(values, (list, tuple)) or not all(
            isinstance(one, KerasTensor | np.ndarray) for one in values
        ):
            raise self.writer.refuse("puts together what are no tensors, which is not read")
        return [
            one if isinstance(one, KerasTensor) else self.writer.const(one, "number", DType.of_numpy(one.dtype))
            for one in values
        ]

    def operands(
        self, first: tuple[int, tuple[str, ...]], second: tuple[int, tuple[str, ...]], usual: DType = FLOAT
    ) -> list[KerasTensor]:
        """Two arguments, each by its place and names: numbers are of the type of the tensor beside them, and in Keras 3
        whole numbers beside floats become floats."""
        given = [self.argument(place, *names) for place, names in (first, second)]
        numbers = [np.asarray(one) for one in given if not isinstance(one, KerasTensor)]
        is_whole = len(numbers) == 2 and usual is FLOAT and all(one.dtype.kind in "iu" for one in numbers)
        like = next((one.dtype for one in given if isinstance(one, KerasTensor)), INT32 if is_whole else usual)
        is_new = self.writer.model.is_keras_3
        if is_new and not like.is_floating and any(one.dtype.kind == "f" for one in numbers):
            like = self.writer.float_type
        if is_new and like is BOOL and any(one.dtype.kind in "iu" for one in numbers):
            like = INT32
        made = [self.tensor(place, *names, like=like) for place, names in (first, second)]
        return of_one_type(self.writer, made) if is_new else made

    def number(self) -> KerasTensor:
        """The first argument, of bools as the whole numbers that Keras 3 counts them as."""
        value = self.tensor(0, "x", "input")
        is_old = not self.writer.model.is_keras_3
        return value if is_old or value.dtype is not BOOL else self.writer.add("Cast", value, DstT=INT32)

    def fraction(self) -> KerasTensor:
        """The first argument, of whole numbers as the floats that Keras 3 makes of them."""
        value = self.tensor(0, "x", "features")
        is_float = value.dtype.is_floating or not self.writer.model.is_keras_3
        return value if is_float else as_float(self.writer, value)

    def axes(self, place: int = 1) -> list[int]:
        """The axes of the first tensor that an operation is for, all by default."""
        rank = len(self.tensor(0, "x", "tensor").dims)
        found = self.argument(place, "axis")
        return list(range(rank)) if found is None else [axis % rank for axis in pair(found, 1)]


def parts(item: Any) -> Iterator[Any]:
    """What is in lists and tables, whose keys are read in their order."""
    if isinstance(item, (list, dict)):
        for one in item if isinstance(item, list) else (item[name] for name in sorted(item)):
            yield from parts(one)
    else:
        yield item
