"""LocallyConnected1D and 2D: windows over space, with a kernel of its own at each place.

Source: keras/layers/local.py and conv_kernel_idxs in keras/utils/conv_utils.py of Keras 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from pocketgraph.formats.keras.activation_functions import activated
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, Rule, contraction, pair, transposed
from pocketgraph.formats.keras.window_layers import axes_of_space, padded, strided, with_height
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array


def locally_connected(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Each window of space times the kernel of its place.

    Raises:
        FormatError: the sizes of space are open, or its margins are of another kind.
    """
    space = axes_of_space(writer)
    is_first = writer.config.get("data_format") == "channels_first"
    padding = str(writer.config.get("padding", "valid"))
    if is_first:
        value = transposed(writer, value, [0, *range(2, space + 2), 1])
    sizes = [int(size or 0) for size in value.dims[1:]]
    if not all(sizes) or padding not in ("valid", "same"):
        raise writer.refuse(f"has padding={padding} and takes {value.dims[1:]}, which is not read")
    windows, strides = (pair(writer.config.get(name, 1), space) for name in ("kernel_size", "strides"))
    places = [strided(*each, padding) or 0 for each in zip(sizes, windows, strides, strict=False)]
    before = [window // 2 if padding == "same" else 0 for window in windows]
    ends = [(places[at] - 1) * strides[at] + windows[at] - before[at] - sizes[at] for at in range(space)]
    if padding == "same":
        value = padded(writer, value, [(first, max(last, 0)) for first, last in zip(before, ends, strict=True)])
    filters, features = int(writer.config["filters"]), prod(windows) * sizes[-1]
    if space == 1:
        value = with_height(writer, value)
    ones = (1,) * (3 - space)  # of the batch, and of the height of what has none
    rows = writer.add(
        "ExtractImagePatches", value, dims=(value.dims[0], *ones[1:], *places, features), ksizes=(*ones, *windows, 1),
        strides=(*ones, *strides, 1), rates=(1, 1, 1, 1), padding=b"VALID",
    )  # fmt: skip
    rows = writer.reshaped(rows, (value.dims[0], prod(places), features))
    if int(writer.config.get("implementation", 1)) == 1 and not is_first:
        kernel = writer.weight("kernel")
    else:
        held = kernels(writer.array("kernel"), sizes, windows, strides, places, before, filters, is_first=is_first)
        kernel = writer.const(held.reshape(prod(places), features, filters), "kernel", FLOAT)
    made = contraction(writer, "bpi,pio->bpo", rows, kernel)
    made = writer.reshaped(made, (value.dims[0], *places, filters))
    if writer.config.get("use_bias", True):
        bias = writer.array("bias")
        if is_first:  # Keras reads its elements in that order, though its shape has the channels last
            bias = np.moveaxis(bias.reshape(filters, *places), 0, -1)
        made = writer.add("AddV2", made, writer.const(bias, "bias", FLOAT))
    made = activated(writer, made, writer.config.get("activation"))
    return transposed(writer, made, [0, space + 1, *range(1, space + 1)]) if is_first else made


def kernels(
    stored: Array, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], places: Sequence[int],
    before: Sequence[int], filters: int, *, is_first: bool,
) -> Array:  # fmt: skip
    """The kernel of each place, [places…, windows…, channels, filters].

    Args:
        stored: of implementation 1 [places, channels and window, filters]; of 2 [inputs…, outputs…]; of 3 one number
            for each connection, in the order of outputs, then of inputs.
        sizes: of space, and the number of channels.
        before: how many elements of zeros are ahead of each axis of space.
        is_first: whether channels come ahead of space, in what is stored, too.

    Raises:
        ValueError: the settings ask for many more than are stored, as those of a damaged file.
    """
    space, channels = len(windows), sizes[-1]
    if prod(places) * prod(windows) * channels * filters > 4**space * stored.size:
        raise ValueError(f"a locally connected layer has only {stored.size} weights")
    if stored.ndim == 3:
        if not is_first:
            return stored
        parted = stored.reshape(*places, channels, *windows, filters)
        return np.moveaxis(parted, space, -2)
    grids = np.ogrid[tuple(slice(size) for size in (*places, *windows, channels, filters))]
    where = [grids[at] * strides[at] + grids[space + at] - before[at] for at in range(space)]
    is_inside = np.ones((1,) * len(grids), bool)
    for at, place in enumerate(where):
        is_inside = is_inside & (place >= 0) & (place < sizes[at])
    where = [np.clip(place, 0, sizes[at] - 1) for at, place in enumerate(where)]
    input_at, output_at = (*where, grids[-2]), (*grids[:space], grids[-1])
    input_sizes, output_sizes = (*sizes[:space], channels), (*places, filters)
    if is_first:
        input_at, output_at, input_sizes, output_sizes = (
            (side[-1], *side[:-1]) for side in (input_at, output_at, input_sizes, output_sizes)
        )
    flat = np.ravel_multi_index(np.broadcast_arrays(*output_at, *input_at), (*output_sizes, *input_sizes))
    is_inside = np.broadcast_to(is_inside, flat.shape)
    made = np.zeros(flat.shape)
    if stored.ndim > 1:
        whole = stored.reshape(prod(input_sizes), prod(output_sizes)).T.ravel()
        made[is_inside] = whole[flat[is_inside]]
    else:
        order = np.argsort(flat[is_inside])
        listed = np.empty(len(order))
        listed[order] = stored
        made[is_inside] = listed
    return made


RULES: dict[str, Rule] = {"LocallyConnected1D": locally_connected, "LocallyConnected2D": locally_connected}
