"""The table of lowerings with all rows in it."""

from pocketgraph.litert.lowering import LOWERINGS
from pocketgraph.litert.lowerings import (  # noqa: F401
    array,
    depthwise_gradients,
    division,
    einsum,
    gradients,
    image,
    math,
    nn,
    norm,
    pool_gradients,
    quantized,
    recurrent,
    reduce,
    resampling,
    responses,
    special,
    unpooling,
    volumes,
)

__all__ = ["LOWERINGS"]
