"""Models that Keras 1 saved, in the words, and with the weights, of Keras 2.

Source: keras/legacy/interfaces.py and preprocess_weights_for_loading in keras/engine/topology.py of Keras 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats.keras.layer_writer import FROM_KERAS_1
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.tensor import Array

Config = dict[str, Any]
CLASSES = {
    "Convolution1D": "Conv1D", "Convolution2D": "Conv2D", "Convolution3D": "Conv3D",
    "Deconvolution2D": "Conv2DTranspose",
    "SeparableConvolution2D": "SeparableConv2D", "AtrousConvolution1D": "Conv1D", "AtrousConvolution2D": "Conv2D",
    "TimeDistributedDense": "Dense",
}  # fmt: skip
"""The classes of layers that Keras 2 calls otherwise."""
SETTINGS = {
    "output_dim": "units", "border_mode": "padding", "subsample": "strides", "subsample_length": "strides",
    "stride": "strides", "bias": "use_bias", "inner_activation": "recurrent_activation", "atrous_rate": "dilation_rate",
    "pool_length": "pool_size", "length": "size", "concat_axis": "axis", "dot_axes": "axes",
    "nb_filter": "filters", "filter_length": "kernel_size",
}  # fmt: skip
"""The settings that Keras 2 calls otherwise."""
ORDERS = {"tf": "channels_last", "th": "channels_first"}
MERGES = {"sum": "Add", "mul": "Multiply", "ave": "Average", "max": "Maximum", "concat": "Concatenate", "dot": "Dot",
          "cos": "Merge"}  # fmt: skip
"""The layer of each mode of a Merge; Keras 2 has none of cosines."""
WEIGHTS = {
    "W": "kernel", "b": "bias", "U": "recurrent_kernel", "running_mean": "moving_mean",
    "running_std": "moving_variance",
    "alphas": "alpha", "W_carry": "carry_kernel", "b_carry": "carry_bias",
}  # fmt: skip
"""What Keras 2 calls a layer's weights; ``running_std`` is a variance there, too."""
GATES = {"LSTM": "ifco", "ConvLSTM2D": "ifco", "GRU": "zrh"}
"""The order of gates in the weights of Keras 2."""
OF_SPACE = re.compile(
    r"(ZeroPadding|Cropping|UpSampling)[23]D|(Global)?(Max|Average)Pooling[23]D|.*Conv.*[23]D|LocallyConnected2D"
)


def layers_of(described: Any) -> Iterator[Config]:
    """All layers that a description tells of, those in others, too."""
    if isinstance(described, Mapping):
        if "class_name" in described and isinstance(described.get("config"), (Mapping, list)):
            yield dict(described)
        for item in described.values():
            yield from layers_of(item)
    elif isinstance(described, list):
        for item in described:
            yield from layers_of(item)


def by_name(described: Any) -> dict[str, Config]:
    """The layers of a description, those in others, too, by their names."""
    return {layer["config"]["name"]: layer for layer in layers_of(described) if "name" in layer["config"]}


def in_words_of_keras_2(described: Any, where: str) -> Any:
    """A description whose classes and settings are those of Keras 2.

    Raises:
        FormatError: a layer has no counterpart.
    """
    orders = {
        layer["config"].get("dim_ordering") for layer in layers_of(described) if isinstance(layer["config"], dict)
    }
    return _renamed(described, "th" if "th" in orders else "tf", where)


def _renamed(item: Any, usual: str, where: str) -> Any:
    if isinstance(item, list):
        return [_renamed(one, usual, where) for one in item]
    if not isinstance(item, Mapping):
        return item
    made = {name: _renamed(one, usual, where) for name, one in item.items()}
    kind, config = made.get("class_name"), made.get("config")
    if kind == "Sequential" and isinstance(config, list) and "layers" in config[0]["config"]:
        return {**made, **_joined_models(config)}
    if not isinstance(kind, str) or not isinstance(config, dict) or ("layers" in config and kind != "Merge"):
        return made
    config = {SETTINGS.get(name, name): one for name, one in config.items()}
    if kind == "Merge":
        mode = config.get("mode")
        if mode not in MERGES:
            raise FormatError(f"the layer '{config.get('name')}' (Merge) joins by code of Python, which is not run",
                              where=where, hint=FROM_KERAS_1)  # fmt: skip
        kind = MERGES[mode]
    if kind == "BatchNormalization" and (config.get("mode") or 0) not in (0, 1):
        raise FormatError(f"the layer '{config.get('name')}' has mode={config['mode']} and normalizes by the moments "
                          "of the batch it is given, which is not read", where=where, hint=FROM_KERAS_1)  # fmt: skip
    kind = CLASSES.get(kind, kind)
    if OF_SPACE.match(kind):
        if "nb_row" in config:
            config["kernel_size"] = [config["nb_row"], config["nb_col"]]
        told = ORDERS.get(str(config.get("dim_ordering") or usual), ORDERS[usual])
        config = {"data_format": told, **config}  # Keras 2.0 says it
    if config.get("input_dtype") and kind == "InputLayer":
        config["dtype"] = config["input_dtype"]
    return {**made, "class_name": kind, "config": config}


def _joined_models(layers: Sequence[Config]) -> Config:
    """A sequence that begins with what several models make, as a model of calls.

    Args:
        layers: the sequence's, in the words of Keras 2, of which the first has the models as its ``layers``.
    """
    merge, *rest = layers
    made: list[Config] = []
    inputs: list[list[Any]] = []
    ends: list[list[Any]] = []
    taken: set[str] = set()
    for at, model in enumerate(merge["config"]["layers"]):
        given: list[list[Any]] = []
        for config in _inputs(model):
            name = claim_name(config["name"], taken)
            made.append({"name": name, "class_name": "InputLayer", "config": config, "inbound_nodes": []})
            given.append([name, 0, 0])
        name = f"{merge['config']['name']}_model_{at}"
        made.append({**model, "name": name, "inbound_nodes": [given]})
        inputs += given
        ends.append([name, 0, 0])
    for layer in (merge, *rest):
        config = layer["config"]
        name = claim_name(config["name"] if isinstance(config, dict) else f"{merge['config']['name']}_model", taken)
        made.append({**layer, "name": name, "inbound_nodes": [ends]})
        ends = [[name, 0, 0]]
    config = {"name": "model", "layers": made, "input_layers": inputs, "output_layers": ends}
    return {"class_name": "Model", "config": config}


def _inputs(model: Config) -> list[Config]:
    """The settings of the inputs of a layer or model that begins one."""
    config = model["config"]
    if isinstance(config, list):
        return _inputs(config[0])
    if "input_layers" in config:
        held = {layer["name"]: layer["config"] for layer in config["layers"]}
        return [held[name] for name, *_ in config["input_layers"]]
    name, shape = config["name"], config["batch_input_shape"]
    if model["class_name"] == "InputLayer":
        return [config]
    return [{"name": f"{name}_input", "batch_input_shape": shape}]


def weights_of_keras_2(described: Any, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Weights by the names of Keras 2, each as one array with the axes that Keras 2 has.

    Args:
        described: the model, in the words of Keras 2.
        weights: as they are stored, as ``LAYER/OWNER_W`` or, of one gate, ``LAYER/OWNER_W_i``.
    """
    kinds = by_name(described)
    parts: dict[str, dict[str, Array]] = {}
    for name, array in weights.items():
        layer, _, last = name.rpartition("/")
        found = re.fullmatch(
            r"(.+?)_([Wb]_carry|W|U|b|gamma|beta|running_mean|running_std|alphas|betas|[at]_(?:left|right)|(?:depth|point)wise_kernel)(?:_([ifcozrh]))?",
            last,
        )
        owner, kind, gate = found.groups() if found else (layer, last, None)
        key = layer if f"/{layer}".endswith(f"/{owner}") else f"{layer}/{owner}"
        parts.setdefault(f"{key}/{WEIGHTS.get(kind, kind)}", {})[gate or ""] = array
    made: dict[str, Array] = {}
    for name, gates in parts.items():
        owner, _, last = name.rpartition("/")
        short = owner.rpartition("/")[2]
        told = kinds.get(short) or kinds.get(re.sub("^(forward|backward)_", "", short)) or {}
        of, config = str(told.get("class_name")), told.get("config", {})
        arrays = [gates[""]] if "" in gates else [gates[gate] for gate in GATES[of]]
        if last.endswith("kernel"):
            arrays = [_with_axes_of_keras_2(of, config, array) for array in arrays]
        name = f"{owner}/embeddings" if of == "Embedding" else name
        made[name] = np.concatenate(arrays, axis=-1)
    return made


def _with_axes_of_keras_2(kind: str, config: Mapping[str, Any], kernel: Array) -> Array:
    """A kernel with the axes of space first."""
    is_first = config.get("data_format") == "channels_first"
    if kind == "Conv1D" and kernel.ndim == 4:
        if kernel.shape[1] != 1 or kernel.shape[3] != config.get("filters"):
            kernel = np.transpose(kernel, (2, 3, 1, 0))
        return kernel[:, 0]
    if kind == "Conv2DTranspose":
        return np.transpose(kernel, (2, 3, 0, 1) if is_first else (0, 1, 3, 2))
    if is_first and kind in ("Conv2D", "SeparableConv2D", "Conv3D"):
        return np.transpose(kernel, (2, 3, 4, 1, 0) if kind == "Conv3D" else (2, 3, 1, 0))
    return kernel


def turned(kind: str, name: str, kernel: Array) -> Array:
    """A kernel of Theano, which convolves, as one of TensorFlow, which correlates."""
    if kind not in ("Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose", "ConvLSTM2D") or not name.endswith("kernel"):
        return kernel
    space: Sequence[int] = range(kernel.ndim - 2)
    return np.flip(kernel, tuple(space))
