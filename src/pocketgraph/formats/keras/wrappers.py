"""All layers of Keras that are read, and those that wrap another: each step by itself, and both ways through time."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.formats.keras import attention_layers, loops_over_time, plain_layers, window_layers
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, Rule


def time_distributed(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """A layer for each step, the steps taken as a larger batch."""
    (value,) = inputs
    inner, rule = writer.inner(writer.config["layer"], "step")
    made = rule(inner, [writer.reshaped(value._replace(mask=None), (None, *value.dims[2:]))])
    if isinstance(made, list):
        raise writer.refuse("wraps a layer of several results, which is not read")
    return writer.reshaped(made, (*value.dims[:2], *made.dims[1:]), value)


def bidirectional(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor | list[KerasTensor]:
    """A recurrent layer from the first step to the last, and another from the last to the first."""
    described = writer.config["layer"]
    config = dict(described["config"])
    name = config["name"].removeprefix("forward_")
    both: list[KerasTensor] = []
    for way in ("forward", "backward"):
        config |= {"name": f"{way}_{name}", "go_backwards": way == "backward"}
        inner, rule = writer.inner({**described, "config": dict(config)}, way)
        made = rule(inner, inputs)
        if isinstance(made, list):
            raise writer.refuse("has return_state=True, which is not read")
        if way == "backward" and config.get("return_sequences", False):
            made = writer.add("ReverseV2", made, writer.const([1], "axis"))
        both.append(made)
    mode = writer.config.get("merge_mode", "concat")
    kind = {"concat": "Concatenate", "sum": "Add", "mul": "Multiply", "ave": "Average"}.get(mode)
    if kind is None:
        return both
    merge, rule = writer.inner({"class_name": kind, "config": {}}, "merge")
    return rule(merge, both)


RULES: dict[str, Rule] = {
    **plain_layers.RULES, **window_layers.RULES, **loops_over_time.RULES, **attention_layers.RULES,
    "TimeDistributed": time_distributed, "Bidirectional": bidirectional,
}  # fmt: skip
"""How each class of layers is written."""
PASS_MASKS = frozenset(
    ("Activation", "Dense", "Dropout", "SpatialDropout1D", "GaussianNoise", "GaussianDropout", "AlphaDropout",
     "BatchNormalization", "LayerNormalization", "LSTM", "GRU", "SimpleRNN", "Bidirectional", "TimeDistributed", "ReLU",
     "LeakyReLU", "PReLU", "ELU", "ThresholdedReLU", "Softmax", "Masking", "ActivityRegularization"),
)  # fmt: skip
"""Layers whose steps count where those of their input do."""
IGNORE_MASKS = PASS_MASKS | {
    "Flatten",
    "GlobalAveragePooling1D",
    "GlobalMaxPooling1D",
    "Reshape",
    "Permute",
    "Conv1D",
    "MaxPooling1D",
    "AveragePooling1D",
}
"""Layers that take steps that do not count as any other, as TensorFlow.js does."""
COUNTS_MASKS = frozenset(("GlobalAveragePooling1D",))
"""Of these, what Keras itself computes of the steps alone that count."""
