"""The variables of an archive's layers, which are numbered in the order in which a layer makes them, by their names.

Source: keras/src/saving/saving_lib.py (``_save_state``, ``_save_container_state``), keras/src/utils/naming.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from pocketgraph.errors import FormatError
from pocketgraph.formats.keras.topology import DEEPEST, Config
from pocketgraph.formats.keras.weight_checks import left_out_by
from pocketgraph.formats.keras.wrappers import MODELS, ways
from pocketgraph.graph.tensor import Array

Variables = Callable[[str], "list[Array]"]
"""The arrays of what is stored at a path."""
KERNEL = ("kernel", "bias")
RECURRENT = ("kernel", "recurrent_kernel", "bias")
NORMS = ("gamma", "beta")
SPECTRA = ("real_kernel", "imag_kernel")
NAMES: dict[str, tuple[str, ...]] = {
    "Dense": KERNEL, "EinsumDense": KERNEL, "Conv1D": KERNEL, "Conv2D": KERNEL, "Conv3D": KERNEL,
    "Conv1DTranspose": KERNEL, "Conv2DTranspose": KERNEL, "Conv3DTranspose": KERNEL,
    "LocallyConnected1D": KERNEL, "LocallyConnected2D": KERNEL,
    "DepthwiseConv1D": ("depthwise_kernel", "bias"), "DepthwiseConv2D": ("depthwise_kernel", "bias"),
    "SeparableConv1D": ("depthwise_kernel", "pointwise_kernel", "bias"),
    "SeparableConv2D": ("depthwise_kernel", "pointwise_kernel", "bias"),
    "BatchNormalization": (*NORMS, "moving_mean", "moving_variance"), "LayerNormalization": NORMS,
    "Attention": ("scale", "concat_score_weight"), "AdditiveAttention": ("scale",),
    "LayerScale": ("gamma",), "RMSNormalization": ("scale",), "GroupNormalization": NORMS,
    "Embedding": ("embeddings",), "ReversibleEmbedding": ("embeddings", "reverse_embeddings"), "PReLU": ("alpha",),
    "Normalization": ("mean", "variance", "count"), "TextVectorization": ("idf_weights",),
    "STFTSpectrogram": SPECTRA, "StringLookup": ("idf_weights",), "IntegerLookup": ("idf_weights",),
}  # fmt: skip
"""Not traits: what each class of layers calls its variables, in the order in which it makes them."""
CELLS = ("LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
ATTENTION = {"query_dense": "query", "key_dense": "key", "value_dense": "value", "output_dense": "attention_output"}
"""Where an attention keeps its parts, and what these are called; older files begin the first with an underscore."""
HEADS = ("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention")
ROOTS = ("layers", "_layer_checkpoint_dependencies")
"""Where a model keeps its layers; the second in TensorFlow 2.12."""


def group_name(kind: str) -> str:
    """What an archive calls a layer of a class, ``conv2d`` for Conv2D; further ones get ``_1``, ``_2``.

    >>> [group_name(kind) for kind in ("Conv2DTranspose", "LSTM", "PReLU", "GlobalAveragePooling2D")]
    ['conv2d_transpose', 'lstm', 'p_re_lu', 'global_average_pooling2d']
    """
    kind = "GroupedQueryAttention" if kind == "GroupQueryAttention" else kind  # called otherwise than its class
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", kind))
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def variables_of_layers(
    described: Config, stored: Variables, where: str, path: str = "", scope: str = "", depth: int = 0
) -> Iterator[tuple[str, Array]]:
    """Each variable, under the names of the models and the layer around it.

    Args:
        described: the model's class and configuration.
        stored: reads what an archive has at a path.
        where: the file, for messages.
        path: where the model lies in it.
        scope: the names of the models around.
        depth: how many there are.

    Raises:
        FormatError: a layer has not as many variables as its class.
    """
    if depth > DEEPEST:
        raise FormatError(f"more than {DEEPEST} models lie in each other", where=where)
    config = described["config"]
    layers = config.get("layers", ()) if isinstance(config, Mapping) else config
    for root in ROOTS:
        for layer, base in numbered(layers):
            place = f"{path}/{root}/{base}"
            name = f"{scope}{layer.get('name') or layer['config'].get('name', base)}"
            if layer["class_name"] in MODELS:
                yield from variables_of_layers(layer, stored, where, place, f"{name}/", depth + 1)
            else:
                yield from _of_layer(layer["class_name"], layer["config"], name, stored, where, place)


def numbered(layers: Iterable[Config]) -> Iterator[tuple[Config, str]]:
    """What an archive calls each of some layers that it holds as a list."""
    counts: Counter[str] = Counter()
    for layer in layers:
        base = group_name(layer["class_name"])
        yield layer, base + f"_{counts[base]}" * bool(counts[base])
        counts[base] += 1


def _of_layer(
    kind: str, config: Config, name: str, stored: Variables, where: str, path: str
) -> Iterator[tuple[str, Array]]:
    if kind == "Bidirectional":
        for way, inner in zip(("forward", "backward"), ways(config), strict=True):
            of = inner["config"]["name"]
            yield from _of_layer(
                inner["class_name"], inner["config"], f"{name}/{of}", stored, where, f"{path}/{way}_layer"
            )
    elif kind in ("TimeDistributed", "SpectralNormalization"):
        inner = config["layer"]
        yield from _of_layer(
            inner["class_name"], inner["config"], f"{name}/{inner['config']['name']}", stored, where, f"{path}/layer"
        )
    elif kind in HEADS:
        for part, called in ATTENTION.items():
            for spelled in (part, f"_{part}"):
                yield from _named(KERNEL, config, f"{name}/{called}", stored(f"{path}/{spelled}"), where)
    elif kind == "RNN":
        cell = config["cell"]
        is_stack = cell["class_name"] == "StackedRNNCells"
        for one, base in numbered(cell["config"]["cells"] if is_stack else [cell]):
            arrays = stored(f"{path}/cell" + f"/cells/{base}" * is_stack)
            yield from _named(RECURRENT, one["config"], f"{name}/{one['config']['name']}", arrays, where)
    elif kind in MODELS:
        yield from variables_of_layers({"class_name": kind, "config": config}, stored, where, path, f"{name}/", 1)
    elif kind in CELLS:
        yield from _named(RECURRENT, config, name, stored(f"{path}/cell"), where)
    elif kind in NAMES:
        yield from _named(NAMES[kind], config, name, stored(path), where)


def _named(
    names: tuple[str, ...], config: Config, layer: str, arrays: list[Array], where: str
) -> Iterator[tuple[str, Array]]:
    """The arrays by name; none where nothing is stored.

    Raises:
        FormatError: there are not as many arrays as the layer has variables.
    """
    wanted = [
        name for name in names
        if left_out_by(name, config) is None
        and not (name == "reverse_embeddings" and config.get("tie_weights"))
        and not (name in SPECTRA and config["mode"] in ("real", "imag") and not name.startswith(config["mode"]))
        and (name != "concat_score_weight" or config.get("score_mode") == "concat")
    ]  # fmt: skip
    if arrays and len(arrays) != len(wanted):
        raise FormatError(
            f"the layer '{layer}' has {len(arrays)} stored variables, where it makes {len(wanted)}", where=where
        )
    yield from ((f"{layer}/{name}", array) for name, array in zip(wanted, arrays, strict=False))
