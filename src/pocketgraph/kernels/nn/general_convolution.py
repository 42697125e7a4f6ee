"""The convolution of newer graphs that is told its dimensions: two or three, behind any number of batch dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.nn.convolution import convolve
from pocketgraph.kernels.registry import kernel
from pocketgraph.kernels.windows import from_channels_last, spatial, to_channels_last, windows

FORMATS = {("CHANNELS_LAST", 4): "NHWC", ("CHANNELS_LAST", 5): "NDHWC", ("CHANNELS_FIRST", 4): "NCHW",
           ("CHANNELS_FIRST", 5): "NCDHW"}  # fmt: skip


@kernel("Conv")
def conv(
    input: Array, filter: Array, *, strides: Sequence[int], padding: str, explicit_paddings: Sequence[int] = (),
    data_format: str = "CHANNELS_LAST", dilations: Sequence[int] = (), batch_dims: int = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """``filter`` is (spatial…, channels, outputs); ``strides`` and ``dilations`` have one batch dimension.

    Raises:
        RunError: other than two or three spatial dimensions, or channels that are not in ``groups`` groups.
    """
    layout = FORMATS.get((data_format, filter.ndim))
    if layout is None or batch_dims < 0 or input.ndim - batch_dims != filter.ndim - 1:
        raise RunError(
            f"The input must have 2 or 3 spatial dimensions behind {batch_dims} of the batch: {list(input.shape)} with "
            f"a filter of {list(filter.shape)}"
        )
    batch = input.shape[:batch_dims]
    count = 1
    for size in batch:
        count *= size
    x = to_channels_last(input.reshape(count, *input.shape[batch_dims:]), layout)
    if x.shape[-1] != filter.shape[-2] * groups:
        raise RunError(f"{x.shape[-1]} channels do not fit {groups} groups of {filter.shape[-2]}")
    spans = windows(
        x.shape[1:-1], filter.shape[:-2], spatial(strides, layout), padding,
        spatial(dilations, layout, "dilations") if dilations else (), explicit_paddings, layout,
    )  # fmt: skip
    found = from_channels_last(convolve(x, filter, spans), layout)
    return np.asarray(found.reshape(*batch, *found.shape[1:]))
