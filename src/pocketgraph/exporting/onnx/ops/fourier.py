"""Fourier transforms along the last axis, and what makes complex numbers of floats and floats of these."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.onnx.complex_numbers import REFUSED, give_pairs, joined, pairs_of, part_of
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.elementwise import angle
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import DOUBLE, FLOAT
from pocketgraph.litert.operands import KNOWN

AXIS_IS_FED = 20
"""The opset whose DFT takes its axis as an input first."""


@converts("RFFT")
def real_transform(emit: OnnxEmit, node: Node, value: OnnxValue) -> None:
    whole = emit.unsqueeze(value, [emit.rank(value)])
    give_pairs(emit, node, _transformed(emit, whole, _length(emit), onesided=1))


@converts("FFT", "IFFT")
def transform(emit: OnnxEmit, node: Node) -> None:
    give_pairs(emit, node, _transformed(emit, pairs_of(emit), inverse=int(node.op == "IFFT")))


@converts("IRFFT")
def inverse_of_real(emit: OnnxEmit, node: Node) -> OnnxValue:
    """The other half of the spectrum is the conjugate of the first one, backwards."""
    length, pairs = _length(emit), pairs_of(emit)
    axis, half = emit.rank(pairs) - 2, length // 2 + 1
    if emit.known_size(pairs, axis, "the number of frequencies") < half:
        raise emit.unsupported(f"its spectrum has fewer than the {half} frequencies of {length} samples")
    first = emit.slice(pairs, axis, 0, half)
    last = (length - 1) // 2
    if last:
        ends = [emit.ints([number]) for number in (last, 0, axis, -1)]
        turned = emit.op("Slice", [first, *ends], [*list(first.shape)[:axis], last, 2])
        first = emit.concat([first, _conjugate(emit, turned)], axis)
    return part_of(emit, _transformed(emit, first, inverse=1), 0)


@converts("ComplexAbs")
def magnitude(emit: OnnxEmit, node: Node) -> OnnxValue:
    pairs = pairs_of(emit)
    squares = reduce(emit, "ReduceSumSquare", pairs, [emit.rank(pairs) - 1], False)
    return emit.op("Sqrt", [squares], squares.shape)


@converts("Real", "Imag")
def part(emit: OnnxEmit, node: Node) -> OnnxValue:
    return part_of(emit, pairs_of(emit), int(node.op == "Imag"))


@converts("Conj")
def conjugate(emit: OnnxEmit, node: Node) -> None:
    give_pairs(emit, node, _conjugate(emit, pairs_of(emit)))


@converts("Angle")
def phase(emit: OnnxEmit, node: Node) -> OnnxValue:
    pairs = pairs_of(emit)
    return angle(emit, node, part_of(emit, pairs, 1), part_of(emit, pairs, 0))


@converts("Complex")
def complex_of(emit: OnnxEmit, node: Node, real: OnnxValue, imaginary: OnnxValue) -> None:
    if not real.shape.is_known or real.shape != imaginary.shape:
        raise emit.unsupported("its parts are not known to have one shape")
    give_pairs(emit, node, joined(emit, [real, imaginary]))


def complex_cast(emit: OnnxEmit, node: Node) -> OnnxValue | None:
    """A cast to complex numbers, or from them, which drops the imaginary part."""
    dtype, _ = emit.output()
    if not dtype.is_complex:
        return emit.cast(part_of(emit, pairs_of(emit), 0), dtype)
    value = emit.input(0)
    if node.dtype("SrcT").is_complex:
        raise emit.unsupported(REFUSED)
    rank = emit.rank(value)
    value = emit.cast(value, DOUBLE if dtype.name == "complex128" else FLOAT)
    borders = emit.ints([0] * (2 * rank + 1) + [1])
    shape = None if value.shape.dims is None else [*value.shape.dims, 2]
    give_pairs(emit, node, emit.op("Pad", [emit.unsqueeze(value, [rank]), borders], shape))
    return None


def _conjugate(emit: OnnxEmit, pairs: OnnxValue) -> OnnxValue:
    return emit.op("Mul", [pairs, emit.const(np.asarray([1, -1], pairs.dtype.numpy))], pairs.shape)


def _length(emit: OnnxEmit) -> int:
    length = emit.static_or_none(1)
    if length is None:
        raise emit.unsupported(f"the length of the transform must be {KNOWN}")
    return int(np.asarray(length).reshape(-1)[0])


def _transformed(
    emit: OnnxEmit, value: OnnxValue, length: int | None = None, *, onesided: int = 0, inverse: int = 0
) -> OnnxValue:
    """The transform along the last axis but one, which is cut or filled with zeros to ``length``."""
    emit.since(17, "ONNX has Fourier transforms")
    rank = emit.rank(value)
    if rank == 2:  # DFT wants a batch
        return emit.squeeze(
            _transformed(emit, emit.unsqueeze(value, [0]), length, onesided=onesided, inverse=inverse), [0]
        )
    dims = list(value.shape.dims or ())
    count = dims[-2] if length is None else length
    shape = [*dims[:-2], count // 2 + 1 if onesided and count is not None else count, 2]
    operands = [value, None if length is None else emit.const(np.int64(length))]
    if emit.opset >= AXIS_IS_FED:
        return emit.op("DFT", [*operands, emit.const(np.int64(rank - 2))], shape, onesided=onesided, inverse=inverse)
    return emit.op("DFT", operands, shape, axis=rank - 2, onesided=onesided, inverse=inverse)
