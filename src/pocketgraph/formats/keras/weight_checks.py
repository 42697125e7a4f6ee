"""Makes sure that a layer's inputs and weights are as many, and as large, as its description says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any

from pocketgraph.errors import FormatError
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, Rule, pair

SWITCHES = {"bias": ("use_bias", "bias_axes"), "gamma": ("scale",), "beta": ("center",), "scale": ("use_scale",)}
"""The settings that a weight is there for, where a layer has them."""
GATES = {"LSTM": 4, "ConvLSTM1D": 4, "ConvLSTM2D": 4, "ConvLSTM3D": 4, "GRU": 3}
"""How many kernels the layers of these classes have side by side."""
OF_PLACES = "LocallyConnected"  # whose kernels are laid out in three ways
WINDOWS = ("kernel", "depthwise_kernel", "recurrent_kernel")
SETTINGS: dict[str, tuple[tuple[int, str], ...]] = {
    **dict.fromkeys(("kernel", "recurrent_kernel", "pointwise_kernel", "bias"), ((-1, "units"), (-1, "filters"))),
    "depthwise_kernel": ((-1, "depth_multiplier"),), "embeddings": ((0, "input_dim"), (1, "output_dim")),
    "query/kernel": ((-2, "num_heads"), (-2, "num_query_heads"), (-1, "key_dim"), (-1, "head_dim")),
    "key/kernel": ((-2, "num_heads"), (-2, "num_key_value_heads"), (-1, "key_dim"), (-1, "head_dim")),
    "value/kernel": ((-2, "num_heads"), (-2, "num_key_value_heads"), (-1, "value_dim"), (-1, "head_dim")),
    "gamma": (), "beta": (), "query/bias": (),
}  # fmt: skip
"""Which setting tells a size of a weight, by its axis."""
OF_OTHERS = "give the weights of this model: model.save(…) of Keras writes both, and refuses those of another likewise"


def left_out_by(name: str, config: Mapping[str, Any]) -> str | None:
    """The setting for which a layer has no weight of a name; None where it has one."""
    if config.get("rms_scaling") and name in ("gamma", "beta"):
        return "rms_scaling" if name == "beta" else None
    return next((switch for switch in SWITCHES.get(name, ()) if not config.get(switch, True)), None)


def checked(rule: Rule) -> Rule:
    """A rule that refuses other inputs than it has parameters, and weights that are not those of the description."""
    places = list(signature(rule).parameters.values())[1:]
    is_open = places[-1].kind is Parameter.VAR_POSITIONAL
    least, most = max(1, sum(place.default is Parameter.empty for place in places) - is_open), len(places)
    wanted = f"{least}{' or more' if is_open else f' or {most}' * (most > least)} input{'s' * (is_open or most > 1)}"

    @wraps(rule)
    def run(writer: LayerWriter, *inputs: KerasTensor) -> KerasTensor | list[KerasTensor]:
        if len(inputs) < least or (len(inputs) > most and not is_open):
            raise writer.refuse(f"takes {wanted}, and is given {len(inputs)}")
        for name in SETTINGS:
            stored = writer.stores(name, is_own=True)
            if stored is not None:
                _check(writer, name, writer.model.weights[stored].shape)
        return rule(writer, *inputs)

    return run


def _check(writer: LayerWriter, name: str, shape: tuple[int, ...]) -> None:
    if switch := left_out_by(name.rpartition("/")[2], writer.config):
        raise _of_another(writer, f"has {switch}={writer.config[switch]}, and a weight '{name}' in the file")
    for axis, size, said in _told(writer, name, len(shape)):
        if -len(shape) <= axis < len(shape) and shape[axis] != size:
            raise _of_another(writer, f"has {said}, and its weight '{name}' is {list(shape)} in the file")


def _told(writer: LayerWriter, name: str, rank: int) -> Iterator[tuple[int, int, str]]:
    """What the size of a weight along an axis should be, and what says that."""
    kind, config = writer.kind, writer.config
    if kind.startswith(OF_PLACES):
        return
    name = "depthwise_kernel" if kind.startswith("Depthwise") and name == "kernel" else name
    is_turned = kind.endswith("Transpose") and name == "kernel"
    for axis, setting in SETTINGS[name]:
        told = config.get(setting)
        if isinstance(told, int):
            yield axis - is_turned, told * GATES.get(kind, 1), f"{setting}={told}"
    if name in WINDOWS and isinstance(config.get("kernel_size"), int | list | tuple):
        for axis, told in enumerate(pair(config["kernel_size"], rank - 2)):
            yield axis, told, f"kernel_size={config['kernel_size']}"


def _of_another(writer: LayerWriter, reason: str) -> FormatError:
    return FormatError(f"the layer '{writer.layer}' ({writer.kind}) {reason}", where=writer.model.where, hint=OF_OTHERS)
