"""Normalizations computed on codes; like other layers on codes, they hand on (codes, lowest, highest)."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    F32,
    WIDE,
    Quantized,
    codes_of,
    from_codes,
    limited,
    limited_code,
    moved,
    quantized_first,
    to_codes,
)
from pocketgraph.kernels.quantized.layers import check_widths, ranged, to_int32
from pocketgraph.kernels.quantized.range_checks import ends
from pocketgraph.kernels.registry import kernel


@kernel("QuantizedInstanceNorm")
def quantized_instance_norm(
    x: Array,
    x_min: Array,
    x_max: Array,
    *,
    output_range_given: bool = False,
    given_y_min: float = 0.0,
    given_y_max: float = 0.0,
    variance_epsilon: float = 1e-5,
    min_separation: float = 1e-3,
) -> Quantized:
    """Each channel of each image less its mean, over its standard deviation.

    TensorFlow takes the reciprocal root from the processor's estimate, so that its range may differ in the last place.
    """
    if x.ndim != 4 or not x.size:
        raise RunError(f"QuantizedInstanceNorm takes images with pixels, not {list(x.shape)}")
    if output_range_given and given_y_min >= given_y_max:
        raise RunError(f"given_y_min must be less than given_y_max: {given_y_min} >= {given_y_max}")
    check_widths(x=(x_min, x_max))
    bottom, top = ends(x_min, x_max)
    scale = F32((F32(top) - F32(bottom)) / F32(255))
    pixels = x.reshape(x.shape[0], -1, x.shape[3]).astype(F32)
    distance = scale * (pixels - _mean(pixels))
    values = distance * (F32(1) / np.sqrt(_mean(distance * distance) + F32(variance_epsilon)))
    low, high = (given_y_min, given_y_max) if output_range_given else (float(values.min()), float(values.max()))
    if high - low < min_separation:
        high = float(F32(low) + F32(min_separation))
    return ranged(quantized_first(values.reshape(x.shape), low, high, codes_of(x.dtype)), low, high)


def _mean(pixels: Array) -> Array:
    """The means over the second of three axes, summed in float32 one after another, as Eigen does it."""
    total = np.add.accumulate(pixels, axis=1, dtype=F32)[:, -1:]
    return np.asarray(total / F32(pixels.shape[1]))


@kernel("QuantizedBatchNormWithGlobalNormalization")
def quantized_batch_norm(
    t: Array,
    t_min: Array,
    t_max: Array,
    m: Array,
    m_min: Array,
    m_max: Array,
    v: Array,
    v_min: Array,
    v_max: Array,
    beta: Array,
    beta_min: Array,
    beta_max: Array,
    gamma: Array,
    gamma_min: Array,
    gamma_max: Array,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> Quantized:
    """The batch norm as scale and offset on int32 codes of the fixed range -2^20…2^20; products wrap round."""
    high = float(1 << 20)
    wide = -high, high
    floats = [
        from_codes(codes, *ends(low, top), codes_of(codes.dtype))
        for codes, low, top in (
            (m, m_min, m_max),
            (v, v_min, v_max),
            (beta, beta_min, beta_max),
            (gamma, gamma_min, gamma_max),
        )
    ]
    mean, variance, shift, gain = floats
    scale = F32(1) / np.sqrt(variance + F32(variance_epsilon))
    if scale_after_normalization:
        scale = scale * gain
    offset = -mean * scale + shift
    by, plus = (np.asarray(limited(to_codes(values, *wide, WIDE), WIDE)) for values in (scale, offset))
    one = limited_code(1.0, *wide, WIDE)
    x = moved(t, ends(t_min, t_max), codes_of(t.dtype), wide, WIDE)
    products = (x * by).astype(np.int32).astype(np.int64)
    return ranged(to_int32(np.sign(products) * (np.abs(products) // one) + plus), *wide)
