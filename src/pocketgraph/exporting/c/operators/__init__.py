"""How LiteRT's operators become calls of C kernels, by family."""

from pocketgraph.exporting.c.operators import (  # noqa: F401
    codes,
    convolution,
    elementwise,
    looking_up,
    moving,
    pooling_and_resizing,
    reducing,
)
