"""Takes a row of a picture as one pixel where a convolution's window is as wide as the picture.

    x [1,200,70,1] ─CONV_2D 7x70 [1,194,1,32]
becomes
    x ─ RESHAPE [1,200,1,70] ─CONV_2D 7x1 [1,194,1,32]

Networks for texts and recordings have such windows, over the whole of a word's or a moment's features. XNNPACK reads
each place of a window by itself, and the channels of a place in groups, so that a place of one channel takes as long as
one of eight.
"""

from __future__ import annotations

from pocketgraph.litert.program import Operation, Program, Value, reshaped


def take_whole_rows(program: Program) -> None:
    """Rewrites such convolutions; kernels of floats or of codes, of any number of rows."""
    program.operations = [new for operation in program.operations for new in _over_rows(operation)]


def _over_rows(operation: Operation) -> list[Operation]:
    """The operations that compute the same; the operation itself where its window is narrower than the picture."""
    if operation.code != "CONV_2D":
        return [operation]
    source, kernel, *bias = operation.inputs
    if source is None or kernel is None or kernel.constant is None or len(source.shape) != 4:
        return [operation]
    batch, height, width, channels = source.shape
    is_whole = kernel.shape[2:] == (width, channels) and operation.outputs[0].shape[2] == 1
    if not is_whole or width == 1 or operation.options["dilation_w"] != 1:
        return [operation]
    sizes = (*kernel.shape[:2], 1, width * channels)
    rows = Value(f"{kernel.name}/rows", kernel.dtype, sizes, kernel.constant.reshaped(sizes), kernel.quantization)
    places = (batch, height, 1, width * channels)
    taken = Value(f"{source.name}/rows", source.dtype, places, None, source.quantization)
    options = {**operation.options, "stride_w": 1}
    return [reshaped(source, taken, operation.nodes), operation.replace(inputs=[taken, rows, *bias], options=options)]
