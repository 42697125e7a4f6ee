"""An ONNX graph with fixed shapes as a program in Core ML's model intermediate language (MIL)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.exporting.coreml.operator_table import TRANSLATIONS
from pocketgraph.exporting.coreml.stored_weights import StoredWeights
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operands import KNOWN

MOST_AXES = 5
"""Of a Core ML tensor."""
FIRST_IOS, CODED_WEIGHTS_IOS, CODED_TENSORS_IOS = 15, 16, 17
"""The first iOS that has ML programs, eight-bit weights in them, and tensors that are quantized on the way."""
INT32 = np.iinfo(np.int32)


def oldest_ios(body: Body) -> int:
    """The first iOS that has everything that a graph needs."""
    found = FIRST_IOS
    for operation in body.operations:
        if operation.code == "QuantizeLinear":
            return CODED_TENSORS_IOS
        codes = operation.inputs[0] if operation.code == "DequantizeLinear" else None
        if codes is not None:
            found = max(found, CODED_TENSORS_IOS if codes.constant is None else CODED_WEIGHTS_IOS)
    return found


class CannotSayError(GraphError):
    """An operator that Core ML has no words for."""


class Translation:
    """A program in the making.

    Attributes:
        builder: coremltools' builder of operators.
        reasons: why a node could not be translated, by its name.
    """

    def __init__(self) -> None:
        from coremltools.converters.mil import Builder

        self.builder: Any = Builder
        self.reasons: dict[str, str] = {}
        self._made: dict[OnnxValue, Any] = {}
        self._broken: set[OnnxValue] = set()
        self._names: set[str] = set()
        self._base = ""

    # Operands

    def input(self, operation: OnnxOperation, index: int) -> Any:
        """An operand."""
        value = self.optional(operation, index)
        if value is None:
            raise self.unsupported(f"it has no input {index}")
        return value

    def optional(self, operation: OnnxOperation, index: int) -> Any:
        """An operand, None where it is left out."""
        value = operation.inputs[index] if index < len(operation.inputs) else None
        return None if value is None else self.value(value)

    def value(self, value: OnnxValue) -> Any:
        """What a value is in the program."""
        found = self._made.get(value)
        if isinstance(found, StoredWeights):
            found = self._made[value] = found.expanded(self)
        elif isinstance(found, tuple):
            raise self.unsupported(f"a tensor of {value.rank} axes, and Core ML's have at most {MOST_AXES}")
        if found is None:
            if value.constant is None:
                raise self.unsupported(f"its input {value.name} is not available here")
            array = self.plain(value.constant.numpy())
            found = self._made[value] = self.builder.const(val=array, name=self.name(value.name))
        return found

    def held(self, value: OnnxValue | None) -> Any:
        """What a translation gave for a value: a Core ML value, or what stands for one; None for a constant."""
        return None if value is None else self._made.get(value)

    def static(self, operation: OnnxOperation, index: int, what: str) -> Array:
        """An operand that must be known when exporting; ``what`` names it in the reason."""
        found = self.static_or_none(operation, index)
        if found is None:
            raise self.unsupported(f"{what} must be {KNOWN}, not computed")
        return found

    def static_or_none(self, operation: OnnxOperation, index: int) -> Array | None:
        """An operand as an array, where it is known when exporting."""
        if index >= len(operation.inputs) or operation.inputs[index] is None:
            return None
        value = operation.inputs[index]
        assert value is not None
        if value.constant is not None:
            return np.asarray(value.constant.numpy())
        known = self.value(value).val
        return None if known is None else np.asarray(known)

    def integers(self, operation: OnnxOperation, index: int, what: str) -> list[int]:
        """A static operand as whole numbers."""
        return [int(number) for number in self.static(operation, index, what).reshape(-1)]

    def plain(self, array: Array) -> Array:
        """A constant in one of the types that Core ML computes in: float32, int32 and bool."""
        if array.dtype == np.bool_:
            return array
        if array.dtype.kind in "iu":
            return np.clip(array, INT32.min, INT32.max).astype(np.int32)
        if array.dtype == object or (array.dtype.kind not in "f" and array.dtype.name != "bfloat16"):
            raise self.unsupported(f"Core ML has no tensors of type {array.dtype}")
        return array.astype(np.float32)

    def unsupported(self, reason: str) -> CannotSayError:
        """The error for the operator at hand, to be raised."""
        return CannotSayError(reason)

    # Operators

    def op(self, kind: str, **inputs: Any) -> Any:
        """Adds an operator of the language; its result, or all of them."""
        made = getattr(self.builder, kind)(**inputs, name=self.name(self._base))
        for one in made if isinstance(made, tuple | list) else (made,):
            if one.rank > MOST_AXES:
                raise self.unsupported(f"a tensor of {one.rank} axes, and Core ML's have at most {MOST_AXES}")
        return made

    def kind(self, value: Any) -> str:
        """The type of a value's elements: ``fp32``, ``int32``, ``bool``."""
        from coremltools.converters.mil.mil import types

        return str(types.builtin_to_string(value.dtype))

    def is_bool(self, value: Any) -> bool:
        """Whether a value is of truths."""
        return self.kind(value) == "bool"

    def is_float(self, value: Any) -> bool:
        """Whether a value is of real numbers."""
        return self.kind(value).startswith("fp")

    def cast(self, value: Any, dtype: str) -> Any:
        """A value as ``fp32``, ``int32`` or ``bool``; itself where it is that."""
        return value if self.kind(value) == dtype else self.op("cast", x=value, dtype=dtype)

    def numbers(self, kind: str, values: Mapping[str, Any], **others: Any) -> Any:
        """An operator that moves values about and takes no truths: they go as int32."""
        is_bool = any(self.is_bool(one) for value in values.values() for one in _each(value))
        if not is_bool:
            return self.op(kind, **values, **others)
        given = {
            key: [self.cast(one, "int32") for one in value] if isinstance(value, list | tuple) else
            self.cast(value, "int32") for key, value in values.items()
        }  # fmt: skip
        made = self.op(kind, **given, **others)
        return [self.cast(one, "bool") for one in made] if isinstance(made, tuple | list) else self.cast(made, "bool")

    def name(self, wanted: str) -> str:
        """A name that Core ML takes and that nothing else has."""
        plain = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "value"
        plain = plain if not plain[0].isdigit() else f"_{plain}"
        name, number = plain, 1
        while name in self._names:
            number += 1
            name = f"{plain}_{number}"
        self._names.add(name)
        return name

    # The whole

    def bind(self, value: OnnxValue, made: Any) -> None:
        """Says what a value is in the program."""
        self._made[value] = made

    def translate(self, body: Body) -> None:
        """Adds the operators of a graph; what could not be said is in ``reasons``."""
        for operation in body.operations:
            self._operation(operation)

    def _operation(self, operation: OnnxOperation) -> None:
        row = TRANSLATIONS.row(operation.code)
        if row is None:
            self.reasons.setdefault(operation.node, f"Core ML has nothing for ONNX's {operation.code}")
        if row is None or any(value in self._broken for value in operation.inputs if value is not None):
            self._broken.update(value for value in operation.outputs if value is not None)
            return
        outputs = [value for value in operation.outputs if value is not None]
        self._base = outputs[0].name
        try:
            made = row(self, operation)
            several = made if len(operation.outputs) > 1 and isinstance(made, tuple | list) else (made,)
            for value, one in zip(operation.outputs, several, strict=False):
                if value is not None:
                    self._check_shape(value, one)
                    self.bind(value, one)
        except CannotSayError as refusal:
            self.reasons.setdefault(operation.node, refusal.what)
            self._broken.update(outputs)
        except (ValueError, TypeError, RuntimeError, AttributeError, IndexError, NotImplementedError) as error:
            reason = " ".join(str(error).split())[:200]
            self.reasons.setdefault(operation.node, f"Core ML does not take it as ONNX's {operation.code} ({reason})")
            self._broken.update(outputs)

    def _check_shape(self, value: OnnxValue, made: Any) -> None:
        """Refuses what comes out in another shape than the graph says."""
        if isinstance(made, StoredWeights | tuple) or not value.shape.is_known:
            return
        if any(not isinstance(size, int | np.integer) for size in made.shape):
            raise self.unsupported("the size of what it makes depends on the values that come in")
        if tuple(int(size) for size in made.shape) != tuple(value.shape.known):
            raise self.unsupported(f"Core ML makes {list(made.shape)} where the graph has {list(value.shape.known)}")


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)
