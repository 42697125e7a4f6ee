"""All layers of Keras that are read, and those that wrap another: each step by itself, and both ways through time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from pocketgraph.formats.keras import (
    attention_layers,
    embedding_layers,
    locally_connected_layers,
    loops_over_time,
    plain_layers,
    preprocessing_layers,
    spectrum_layers,
    window_layers,
)
from pocketgraph.formats.keras.activation_functions import scaled
from pocketgraph.formats.keras.layer_writer import (
    KerasTensor,
    LayerWriter,
    Rule,
    broadcast,
    expanded,
    joined,
    transposed,
)
from pocketgraph.formats.keras.operation_call import parts
from pocketgraph.formats.keras.weight_checks import checked
from pocketgraph.formats.keras.window_layers import OF_KERAS_ALONE
from pocketgraph.graph.dtype import BOOL, FLOAT


def time_distributed(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A layer for each step, the steps taken as a larger batch."""
    described = writer.config["layer"]
    inner, rule = writer.inner(described, "step")
    made = rule(inner, writer.reshaped(value._replace(mask=None), (None, *value.dims[2:])))
    if isinstance(made, list):
        if len(made) > 1:
            raise writer.refuse("wraps a layer of several results, which is not read")
        (made,) = made
    if (value.mask is not None and described["class_name"] not in PASS_MASKS | IGNORE_MASKS - READ_MASKS) or made.mask:
        raise writer.refuse("wraps a layer that takes steps of which some are masked, which is not read")
    return writer.reshaped(made, (*value.dims[:2], *made.dims[1:]), value)._replace(mask=value.mask)


def pipeline(writer: LayerWriter, *values: KerasTensor) -> KerasTensor | list[KerasTensor]:
    """Layers one after the other."""
    made: KerasTensor | list[KerasTensor] = [*values]
    for at, described in enumerate(writer.config["layers"]):
        inner, rule = writer.inner(described, f"layer_{at}")
        made = rule(inner, *(made if isinstance(made, list) else [made]))
    return made


def spectral_norm(writer: LayerWriter, value: KerasTensor) -> KerasTensor | list[KerasTensor]:
    """A layer whose kernel training keeps small."""
    inner, rule = writer.inner(writer.config["layer"], "layer")
    return rule(inner, value)


def bidirectional(writer: LayerWriter, value: KerasTensor, *given: KerasTensor) -> KerasTensor | list[KerasTensor]:
    """A recurrent layer from the first step to the last, and another from the last to the first."""
    if len(given) % 2:
        raise writer.refuse("is given the state of one way alone, which is not read")
    both: list[KerasTensor] = []
    states: list[KerasTensor] = []
    for at, described in enumerate(ways(writer.config)):
        config = dict(described["config"])
        keeps_time = bool(config.get("return_sequences", False))
        if writer.model.version and not OF_KERAS_ALONE.match(writer.model.version):
            config["zero_output_for_mask"] = keeps_time
        half = len(given) // 2
        way = ("forward", "backward")[at]
        inner, rule = writer.inner({**described, "config": config}, way)
        inner.owners = ((inner.scope, f"{way}_{inner.layer}"), inner.owners[0])
        inner.has_own_mask = writer.has_own_mask
        made = rule(inner, value, *given[half * at : half * (at + 1)])
        first, *rest = made if isinstance(made, list) else [made]
        if at and keeps_time:
            first = writer.add("ReverseV2", first, writer.const([1], "axis"))
        both.append(first)
        states += rest
    mode = writer.config.get("merge_mode", "concat")
    kind = {"concat": "Concatenate", "sum": "Add", "mul": "Multiply", "ave": "Average"}.get(mode)
    if kind is None:
        return [one._replace(mask=value.mask if keeps_time else None) for one in both] + states
    merge, rule = writer.inner({"class_name": kind, "config": {}}, "merge")
    merged = rule(merge, *both)
    assert isinstance(merged, KerasTensor), "a merge has one result"
    merged = merged._replace(mask=value.mask if keeps_time else None)
    return [merged, *states] if states else merged


def python_code(writer: LayerWriter, *inputs: KerasTensor) -> KerasTensor:
    """Refuses a Lambda, whose code could do anything."""
    raise writer.refuse("is Python code, which is not run: put a layer or an operation of Keras in its place")


def ways(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The layers of a Bidirectional as they are called: from the first step, and the other way."""
    described = config["layer"]
    name = described["config"]["name"].removeprefix("forward_")
    turned = not described["config"].get("go_backwards", False)
    yield {**described, "config": {**described["config"], "name": f"forward_{name}"}}
    if config.get("backward_layer"):
        yield config["backward_layer"]
    else:
        yield {**described, "config": {**described["config"], "name": f"backward_{name}", "go_backwards": turned}}


CHANNELS_FIRST = frozenset((*window_layers.RULES, "Flatten", "Resizing", "CenterCrop"))
"""Layers that are told where channels are, and take one tensor."""
READ_MASKS = frozenset((
    *loops_over_time.RULES, *attention_layers.RULES, "Bidirectional", "TimeDistributed", "GlobalAveragePooling1D",
    "Softmax",
))  # fmt: skip
"""Layers that compute with masks."""
PASS_MASKS = frozenset((
    "Activation", "Dense", "Dropout", "SpatialDropout1D", "GaussianNoise", "GaussianDropout", "AlphaDropout",
    "BatchNormalization", "LayerNormalization", "GroupNormalization", "UnitNormalization", "ReLU", "LeakyReLU", "PReLU",
    "ELU", "ThresholdedReLU", "Softmax", "ActivityRegularization", "Identity",
    *attention_layers.RULES,
))  # fmt: skip
"""Layers whose steps count where those of their first input do."""
PASS_MASKS_IN_KERAS_3 = ("Rescaling", "Normalization")
IGNORE_MASKS = frozenset((
    *PASS_MASKS, *READ_MASKS, "Masking", "Embedding", "Flatten", "GlobalMaxPooling1D", "Reshape", "Permute", "Conv1D",
    "MaxPooling1D", "AveragePooling1D",
))  # fmt: skip
"""Layers that TensorFlow.js lets have masks."""


MODELS = ("Sequential", "Model", "Functional")
ASKED: dict[str, frozenset[int | str]] = {
    **dict.fromkeys((*loops_over_time.RULES, "Bidirectional"), frozenset((1, "initial_state"))),
    **dict.fromkeys(
        ("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention"),
        frozenset((1, 2, 6, "query", "value", "key", "attention_mask")),
    ),
}
"""The arguments of calls that may be tensors, by place and by name, besides the first."""
TRAINED = frozenset((
    "TimeDistributed", "SpectralNormalization", *MODELS,
    *(kind for kind, rule in {**plain_layers.RULES, **preprocessing_layers.RULES}.items() if rule in (
        plain_layers.identity, plain_layers.batch_norm, preprocessing_layers.augmentation,
        preprocessing_layers.random_crop)),
))  # fmt: skip
"""Layers that give something else in training."""


def check_arguments(writer: LayerWriter) -> None:
    """Makes sure that no argument of a call is overlooked.

    Raises:
        FormatError: one is.
    """
    told = [*enumerate(writer.given), *writer.named.items()]
    tensors = [place for place, value in told if any(isinstance(one, KerasTensor) for one in parts(value))]
    for place in tensors[1:]:
        if place not in ASKED.get(writer.kind, ()):
            said = f"argument {place + 1}" if isinstance(place, int) else place
            raise writer.refuse(f"is given a tensor as its {said}, which is not read")
    if writer.has_own_mask and writer.kind not in (*READ_MASKS, *MODELS, "BatchNormalization"):
        raise writer.refuse("is given a mask, which is not read")
    has_dropout = any(writer.config.get(name) for name in ("dropout", "recurrent_dropout"))
    is_old = writer.model.version.startswith("2.")  # Keras 3 answers as outside of training all the same
    if is_old and writer.named.get("training") and (has_dropout or writer.kind in TRAINED):
        raise writer.refuse("is called with training=True, which is not read")


def with_channels_last(rule: Rule, writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A layer of pictures with channels ahead of space, as one with channels behind it."""
    rank = len(value.dims)
    writer.config = {**writer.config, "data_format": "channels_last"}
    made = rule(writer, transposed(writer, value, [0, *range(2, rank), 1])._replace(mask=value.mask))
    assert isinstance(made, KerasTensor), "such a layer has one result"
    return transposed(writer, made, [0, rank - 1, *range(1, rank - 1)]) if len(made.dims) == rank > 2 else made


def mask_of(writer: LayerWriter, *inputs: KerasTensor) -> KerasTensor | None:
    """The mask of the first result of a layer that gives none itself.

    Raises:
        FormatError: Keras and its versions do not agree about it.
    """
    kind, version = writer.kind, writer.model.version
    masks = [value.mask for value in inputs]
    if not any(masks):
        return None
    if not version and kind not in IGNORE_MASKS - attention_layers.RULES.keys():
        raise writer.refuse("takes steps of which some are masked, which is not read")
    if kind in PASS_MASKS or (kind in PASS_MASKS_IN_KERAS_3 and version.startswith("3.")):
        return masks[0]
    if kind not in plain_layers.MERGES and kind != "Concatenate":
        return None
    axis = int(writer.config.get("axis", -1)) % len(inputs[0].dims) if kind == "Concatenate" else -1
    if axis == 1:
        return joined(writer, [one.mask or _all_steps(writer, one) for one in inputs], 1)
    is_any = writer.model.counts_any_mask
    if is_any and not all(masks):
        return None  # all steps count
    op = "LogicalOr" if is_any else "LogicalAnd"
    distinct = {one.ref: one for one in masks if one is not None}
    return reduce(lambda one, other: writer.add(op, one, other, dims=one.dims), distinct.values())


def merged(writer: LayerWriter, *inputs: KerasTensor) -> KerasTensor | list[KerasTensor]:
    """A merge, for which since Keras 3.4 products and extremes leave out the steps that do not count."""
    if not any(value.mask for value in inputs) or not writer.model.counts_any_mask:
        return plain_layers.merge(writer, *inputs)
    is_product, zero, one = writer.kind == "Multiply", *(writer.const(at, "number", FLOAT) for at in (0, 1))
    total, *others = inputs
    counted = total.mask and expanded(writer, total.mask, 2)
    if counted and is_product:
        total = writer.add("SelectV2", counted, total, one, dims=total.dims)
    for value in others:
        counts = value.mask and expanded(writer, value.mask, 2)
        if counts:
            value = writer.add("SelectV2", counts, value, one if is_product else total, dims=value.dims)
        if counted and not is_product:
            total = writer.add("SelectV2", counted, total, value, dims=value.dims)
        counted = writer.add("LogicalOr", counted, counts) if counts and counted else None
        total = writer.add(plain_layers.MERGES[writer.kind], total, value, dims=broadcast(total.dims, value.dims))
    if counted and is_product:
        total = writer.add("SelectV2", counted, total, zero, dims=total.dims)
    return total


def scaled_sum(writer: LayerWriter, value: KerasTensor, other: KerasTensor) -> KerasTensor:
    """A tensor and a part of another, as the InceptionResNetV2 of Keras 3 adds them."""
    return writer.add("AddV2", value, scaled(writer, other, float(writer.config["scale"])))


def _all_steps(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A mask of steps that all count."""
    sizes = writer.sizes(writer.all_sizes(value)[:2])
    return writer.add("Fill", sizes, writer.const(True, "counts", BOOL), dims=value.dims[:2])


_RULES: dict[str, Rule] = {
    **plain_layers.RULES, **window_layers.RULES, **loops_over_time.RULES, **attention_layers.RULES,
    **embedding_layers.RULES, **preprocessing_layers.RULES, **locally_connected_layers.RULES, **spectrum_layers.RULES,
    "Lambda": python_code,
    "TimeDistributed": time_distributed, **dict.fromkeys(("Multiply", "Maximum", "Minimum"), merged),
    "SpectralNormalization": spectral_norm, "Pipeline": pipeline, "CustomScaleLayer": scaled_sum,
    "Bidirectional": bidirectional,
}  # fmt: skip
RULES = {kind: checked(rule) for kind, rule in _RULES.items()}
"""How each class of layers is written."""
