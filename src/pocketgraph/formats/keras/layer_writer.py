"""Writes the nodes of one call of a Keras layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.graph import DType, Node, const, opdefs
from pocketgraph.graph.attr import AttrValue
from pocketgraph.graph.dtype import DOUBLE, FLOAT, INT32, STRING
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.tensor import Array

Dims = tuple["int | None", ...]


AS_SAVED_MODEL = "give the SavedModel of the Keras model, which TensorFlow writes: model.export('saved_model')"
_SIMPLE_SAVE = (
    "K.set_learning_phase(0), load the model, then "
    "tf.saved_model.simple_save(K.get_session(), 'saved_model', {'x': model.input}, {'y': model.output})"
)
FROM_KERAS_1 = f"in Python with Keras 1 and TensorFlow 1, give its SavedModel: {_SIMPLE_SAVE}"
FROM_KERAS_2 = (
    "in Python with the TensorFlow that wrote it, give its SavedModel: of 2.x load the model, then "
    f"tf.saved_model.save(model, 'saved_model'); with TensorFlow 1 {_SIMPLE_SAVE}"
)
FORGETS_MASKS = frozenset(("MultiHeadAttention",))
"""Layers of Keras 3 that take away the masks of what they are called with."""
READS_MASKS_ALONE = frozenset((
    "Attention", "AdditiveAttention", "GroupQueryAttention", "GroupedQueryAttention", "Multiply", "Maximum", "Minimum",
))  # fmt: skip
"""Layers that read masks which a file does not name in their calls."""


class KerasTensor(NamedTuple):
    """A tensor: its name, its sizes with the batch's first, as far as known, and its element type.

    ``mask`` is a tensor of bools, [batch, time], which says the steps that count; None where all do. ``sizes`` are what
    it holds where it is the shape of a tensor, or one size of it: numbers as far as known, else tensors.
    """

    ref: str
    dims: Dims
    dtype: DType = FLOAT
    mask: KerasTensor | None = None
    sizes: list[int | KerasTensor] | int | None = None


class ModelNodes:
    """The nodes of a model, in the order in which they are made.

    Attributes:
        nodes: by name.
        weights: the stored values by name.
        where: the file, for messages.
        version: of the Keras whose functions are meant; "" for those of TensorFlow.js.
        rules: how each class of layers is written, for those in others.
    """

    def __init__(
        self, weights: Mapping[str, Array], where: str, version: str = "", rules: Mapping[str, Rule] | None = None
    ) -> None:
        self.version, self.is_keras_3, self.rules = version, version.startswith("3."), rules or {}
        self.nodes: dict[str, Node] = {}
        self.taken: set[str] = set()
        self.weights, self.where = weights, where
        self._mask_readers: dict[str, list[tuple[str, str]]] = {}
        self._constants: dict[tuple[str, DType], KerasTensor] = {}
        self._endings: dict[tuple[str, str], list[str]] = {}
        for name in weights:
            first, *inner, last = name.split("/") if "/" in name else ("", name)
            for part in (first, *inner):  # a layer's name, or that of the cell in it
                self._endings.setdefault((part, last), []).append(name)

    @property
    def counts_any_mask(self) -> bool:
        """Whether a step of merged tensors counts where it does in one of them, as since Keras 3.4, not in all."""
        return self.is_keras_3 and not self.version.startswith(("3.0.", "3.1.", "3.2.", "3.3."))

    def note_mask_readers(self, kind: str, call: str, values: Sequence[KerasTensor]) -> None:
        """Makes sure that nothing else reads the masks that an attention of Keras 3.8 and later takes away.

        Raises:
            FormatError: something does, so that the order of the layers' calls would decide the answer.
        """
        if self.is_keras_3 and kind in FORGETS_MASKS | READS_MASKS_ALONE:
            for ref in {value.ref for value in values if value.mask}:
                others = self._mask_readers.setdefault(ref, [])
                others.append((kind, call))
                if len(others) > 1 and FORGETS_MASKS.intersection(one for one, _ in others):
                    named = " and ".join(f"'{one}'" for _, one in others[-2:])
                    raise FormatError(
                        f"{named} read one mask, of which Keras 3 shows the second none", where=self.where,
                        hint=AS_SAVED_MODEL,
                    )  # fmt: skip

    def put(self, node: Node) -> str:
        self.nodes[node.name] = node
        return node.name

    def weight_name(self, scope: str, layer: str, name: str, *, is_own: bool = False) -> str | None:
        """Which stored weight is a layer's: ``SCOPE LAYER/NAME``, or with some names of the scope, or of a cell.

        Unless it is to be its own, it may be one of a layer of this name in another model, where all such are equal.
        """
        if f"{scope}{layer}/{name}" in self.weights:
            return f"{scope}{layer}/{name}"
        part, _, last = name.rpartition("/")
        found = self._endings.get((part or layer.rpartition("/")[2], last), [])
        owner = f"{layer}/{part}" if part else layer
        found = [one for one in found if f"/{owner}/" in f"/{one}"]
        own = [one for one in found if _is_around(f"/{one}".rpartition(f"/{owner}/")[0], scope)]
        found = own if own or is_own else found
        is_one = all(np.array_equal(self.weights[one], self.weights[found[0]]) for one in found[1:])
        return found[0] if found and is_one else None  # a layer that others share is stored with each

    def constant(self, name: str, float_type: DType) -> KerasTensor:
        """The constant of a stored weight, floats in this type, made once however many calls read it."""
        key = name, float_type
        if key not in self._constants:
            array = self.weights[name]
            array = array.astype(float_type.numpy, copy=False) if array.dtype.kind == "f" else array
            made = self.put(const(claim_name(name, self.taken), array))
            self._constants[key] = KerasTensor(made, array.shape, DType.of_numpy(array.dtype))
        return self._constants[key]


class LayerWriter:
    """What a layer's rule writes with.

    Attributes:
        layer: its name.
        owners: the layers that its weights may be stored under, by the names of the models and layers around and their
            own: it, and its wrappers.
        kind: its class.
        config: what the file says of it.
        float_type: what it computes in, and what FLOAT stands for in its rule: DOUBLE where its policy is float64.
            Those of 16 bits are computed in FLOAT.
        model: where its nodes go.
        has_own_mask: whether the call says itself which steps count.
        given, named: what the call has by place and by name, with tensors as values; of a call inside another nothing.
    """

    def __init__(
        self,
        model: ModelNodes,
        kind: str,
        config: Mapping[str, Any],
        scope: str,
        call: str,
        wrappers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.model, self.kind, self.config = model, kind, config
        self.layer = str(config.get("name", call))
        self.owners = ((scope, self.layer), *wrappers)
        self.scope, self.call = scope, call
        policy = config.get("dtype")
        policy = policy["config"].get("name") if isinstance(policy, Mapping) else policy
        self.float_type = DOUBLE if policy == "float64" else FLOAT
        self.given: Sequence[Any] = ()
        self.named: Mapping[str, Any] = {}
        self.has_own_mask = False

    def refuse(self, reason: str) -> FormatError:
        """The error of a layer that cannot be written."""
        hint = advice(self.model.version)
        return FormatError(f"the layer '{self.layer}' ({self.kind}) {reason}", where=self.model.where, hint=hint)

    def inner(self, described: Mapping[str, Any], name: str) -> tuple[LayerWriter, Rule]:
        """What a layer in this one is written with, and how.

        Raises:
            FormatError: it is of a kind that is not read.
        """
        kind, told = str(described["class_name"]), described["config"]
        config = told if isinstance(told, Mapping) else {"layers": told}
        inner = LayerWriter(self.model, kind, config, f"{self.scope}{self.layer}/", f"{self.call}/{name}", self.owners)
        inner.float_type = inner.float_type if "dtype" in config else self.float_type
        if kind not in self.model.rules:
            raise inner.refuse("is of a kind that is not read inside another")
        return inner, self.model.rules[kind]

    def expect(self, **settings: object) -> None:
        """Makes sure that settings are as given here, where the file says any.

        Raises:
            FormatError: one is not.
        """
        for name, wanted in settings.items():
            found = self.config.get(name, wanted)
            if (list(found) if isinstance(found, tuple) else found) != wanted:
                raise self.refuse(f"has {name}={found}, which is not read")

    def weight(self, name: str, other: str = "") -> KerasTensor:
        """A weight of the layer, which may have another name in newer files.

        Raises:
            FormatError: none is stored, or several could be meant.
        """
        return self.model.constant(self._stored(name, other), self.float_type)

    def array(self, name: str) -> Array:
        """The elements of a weight of the layer, in float64."""
        return self.model.weights[self._stored(name)].astype(np.float64)

    def stores(self, name: str, other: str = "", *, is_own: bool = False) -> str | None:
        """What the file calls a weight of the layer; None where it has none.

        Unless it is to be its own, that of a layer of this name in another model will do, as of one that both share.
        """
        named = [(*owner, one) for owner in self.owners for one in (name, other)]
        called = (self.model.weight_name(*one, is_own=own) for own in (True, is_own) for one in named)
        return next((stored for stored in called if stored is not None), None)

    def _stored(self, name: str, other: str = "") -> str:
        stored = self.stores(name, other)
        if stored is None:
            raise self.refuse(f"has no weight '{name}' in the file")
        return stored

    def const(self, value: Any, name: str, dtype: DType = INT32) -> KerasTensor:
        """A constant of the call."""
        dtype = self.float_type if dtype is FLOAT else dtype
        array = np.asarray(value, dtype.numpy)
        made = const(claim_name(f"{self.call}/{name}", self.model.taken), array, dtype)
        return KerasTensor(self.model.put(made), array.shape, dtype)

    def add(
        self,
        op: str,
        *inputs: KerasTensor | Sequence[KerasTensor],
        dims: Dims | None = None,
        name: str = "",
        **attrs: AttrValue,
    ) -> KerasTensor:
        """A node.

        Args:
            inputs: one entry an argument of the op.
            dims: the sizes of its first output; by default those of the first input.
            name: in the call's scope; by default the op's.
            attrs: attributes; those that the inputs say need not be given.
        """
        definition = opdefs.definition(op)
        made: dict[str, AttrValue] = {}
        refs: list[str] = []
        for argument, given in zip(definition.inputs, inputs, strict=True):
            values = [given] if isinstance(given, KerasTensor) else list(given)
            refs += [value.ref for value in values]
            if argument.number_attr:
                made[argument.number_attr] = len(values)
            if argument.type_attr:
                made[argument.type_attr] = values[0].dtype
        node = Node(claim_name(f"{self.call}/{name or op}", self.model.taken), op, refs, {**made, **attrs})
        (dtype, *_) = opdefs.output_dtypes(node)
        first = inputs[0] if inputs and isinstance(inputs[0], KerasTensor) else KerasTensor("", ())
        return KerasTensor(self.model.put(node), first.dims if dims is None else dims, dtype or FLOAT)

    def size(self, value: KerasTensor, axis: int) -> KerasTensor:
        """A size that is known when the model runs."""
        shape = self.add("Shape", value, dims=(len(value.dims),))
        bounds = [self.const([at], "axis") for at in (axis, axis + 1)]
        return self.add("StridedSlice", shape, *bounds, self.const([1], "step"), dims=(), shrink_axis_mask=1)

    def all_sizes(self, value: KerasTensor) -> list[int | KerasTensor]:
        """The sizes of a tensor, of which some are known when the model runs."""
        return [self.size(value, axis) if size is None else size for axis, size in enumerate(value.dims)]

    def sizes(self, wanted: Sequence[int | KerasTensor]) -> KerasTensor:
        """A vector of sizes, of which some are known when the model runs."""
        numbers = [one for one in wanted if isinstance(one, int)]
        if len(numbers) == len(wanted):
            return self.const(numbers, "shape")
        parts = [self.const(one, "size") if isinstance(one, int) else one for one in wanted]
        return self.add("Pack", parts, dims=(len(wanted),))

    def reshaped(self, value: KerasTensor, dims: Dims, like: KerasTensor | None = None) -> KerasTensor:
        """A tensor in another shape; where several sizes are unknown, all but the last are those of ``like``."""
        unknown = [axis for axis, size in enumerate(dims) if size is None]
        wanted: list[int | KerasTensor] = [-1 if size is None else size for size in dims]
        for axis in unknown[:-1]:
            wanted[axis] = self.size(like or value, axis)
        return self.add("Reshape", value, self.sizes(wanted), dims=dims)


def _is_around(names: str, scope: str) -> bool:
    """Whether names before a stored layer, ``/A/B``, are those of a scope ``A/ELSE/B/``, of which some may lack."""
    around, outer = names.split("/")[1:], scope.split("/")[:-1]
    rest = iter(outer)
    return around[:1] == outer[:1] and all(one in rest for one in around)


def advice(version: str) -> str:
    """How the Keras of a version makes what is read of any model; ``Model.export`` came with 2.13."""
    if version.startswith(("0.", "1")):
        return FROM_KERAS_1
    return FROM_KERAS_2 if re.match(r"2($|\.\d\b|\.1[0-2]\b)", version) else AS_SAVED_MODEL


def elements(dims: Dims) -> int | None:
    """How many elements sizes stand for; None where one is unknown."""
    known = [size for size in dims if size is not None]
    return prod(known) if len(known) == len(dims) else None


def with_rest(wanted: Sequence[int | None], dims: Dims) -> Dims:
    """The sizes of a shape that a tensor of sizes ``dims`` gets, of which one may be what remains."""
    sizes = [None if size in (-1, None) else int(size) for size in wanted]
    whole, rest = elements(dims), elements(tuple(size for size in sizes if size is not None))
    if sizes.count(None) == 1 and whole is not None and rest:
        sizes[sizes.index(None)] = whole // rest
    return tuple(sizes)


def joined(writer: LayerWriter, values: Sequence[KerasTensor], axis: int) -> KerasTensor:
    """Tensors one after the other along an axis."""
    values = of_one_type(writer, values)
    axis %= len(values[0].dims)
    sizes = [value.dims[axis] for value in values]
    known = [size for size in sizes if size is not None]
    dims = (*values[0].dims[:axis], sum(known) if len(known) == len(sizes) else None, *values[0].dims[axis + 1 :])
    return writer.add("ConcatV2", list(values), writer.const(axis, "axis"), dims=dims)


def as_float(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A tensor in the floats that a layer computes in."""
    return value if value.dtype is writer.float_type else writer.add("Cast", value, DstT=writer.float_type)


def of_one_type(writer: LayerWriter, values: Sequence[KerasTensor]) -> list[KerasTensor]:
    """Tensors of several types as Keras 3 puts them together: as floats where any is, else as what holds all numbers.

    Raises:
        FormatError: some are texts.
    """
    types = {value.dtype for value in values}
    if len(types) == 1:
        return [*values]
    if STRING in types:
        raise writer.refuse("puts texts and numbers together, which is not read")
    wide = writer.float_type
    if not any(dtype.is_floating for dtype in types):
        wide = DType.of_numpy(np.result_type(*(dtype.numpy for dtype in types)))
        wide = writer.float_type if wide.is_floating else wide  # of int64 and uint64
    return [value if value.dtype is wide else writer.add("Cast", value, DstT=wide) for value in values]


def expanded(writer: LayerWriter, value: KerasTensor, axis: int) -> KerasTensor:
    """A tensor with one more axis, of one element."""
    dims = (*value.dims[:axis], 1, *value.dims[axis:])
    return writer.add("ExpandDims", value, writer.const(axis, "axis"), dims=dims)


def transposed(writer: LayerWriter, value: KerasTensor, order: Sequence[int], name: str = "") -> KerasTensor:
    """A tensor with its axes in another order."""
    dims = tuple(value.dims[axis] for axis in order)
    return writer.add("Transpose", value, writer.const(list(order), "order"), dims=dims, name=name)


def contraction(writer: LayerWriter, equation: str, *values: KerasTensor) -> KerasTensor:
    """Einstein's sum, as ``ab,bc->ac`` tells it; ``...`` are axes that several tensors share, to the left."""
    left, _, right = equation.replace(" ", "").partition("->")
    sizes: dict[str, int | None] = {}
    shared: Dims = ()
    for names, value in zip(left.split(","), values, strict=True):
        if "..." in names:
            first = names.index("...")
            last = len(value.dims) - (len(names) - first - 3)
            shared = broadcast(shared, value.dims[first:last])
            axes = (*value.dims[:first], *value.dims[last:])
        else:
            axes = value.dims
        sizes |= {name: size or sizes.get(name) for name, size in zip(names.replace("...", ""), axes, strict=True)}
    before, _, after = right.partition("...") if "..." in right else (right, "", "")
    dims = (*(sizes[name] for name in before), *(shared if "..." in right else ()), *(sizes[name] for name in after))
    return writer.add("Einsum", values, dims=dims, equation=equation.replace(" ", "").encode())


def pair(value: Any, count: int = 2) -> tuple[int, ...]:
    """A setting that may be one number for all axes."""
    return tuple(int(one) for one in value) if isinstance(value, list | tuple) else (int(value),) * count


def broadcast(one: Dims, other: Dims) -> Dims:
    """The sizes of what two tensors make together."""
    rank = max(len(one), len(other))
    pairs = zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(other)) + other, strict=True)
    return tuple(second if first == 1 else first for first, second in pairs)


Rule = Callable[..., "KerasTensor | list[KerasTensor]"]
"""Given a LayerWriter and the inputs of a call, one parameter each: writes the call's nodes."""
