"""Pictures of program passes: the graph, the program that it is lowered to, and the program after one pass."""

# ruff: noqa: E501 (a line of a picture is an operation)

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Picture(NamedTuple):
    """What a pass does.

    Attributes:
        graph: from ``x`` to ``y``.
        weights: the shapes of constants that are drawn.
        given: the program that the graph is lowered to.
        result: the program after the pass.
        earlier: passes that run before.
    """

    graph: str
    weights: Mapping[str, tuple[int, ...]]
    given: str
    result: str
    earlier: tuple[str, ...] = ()


PICTURES = {
    "merge_equal_operations": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        a = Relu(x, T=float)
        b = Relu(x, T=float)
        y = Mul(a, b, T=float)
        """,
        {},
        """
        a: float[1,4,4,2] = RELU(x)
        b: float[1,4,4,2] = RELU(x)
        y: float[1,4,4,2] = MUL(a, b)
        """,
        """
        a: float[1,4,4,2] = RELU(x)
        y: float[1,4,4,2] = MUL(a, a)
        """,
    ),
    "sink_transposes": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,2,4,4])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME", data_format="NCHW")
        r = Relu(c, T=float)
        y = Conv2D(r, v, T=float, strides=[1,1,1,1], padding="SAME", data_format="NCHW")
        """,
        {"w": (3, 3, 2, 4), "v": (3, 3, 4, 2)},
        """
        c/transpose_2: float[1,4,4,2] = TRANSPOSE(x, [0, 2, 3, 1])
        c/conv_2d_4: float[1,4,4,4] = CONV_2D(c/transpose_2, float[4,3,3,2], none, padding=SAME)
        c: float[1,4,4,4] = TRANSPOSE(c/conv_2d_4, [0, 3, 1, 2])
        r: float[1,4,4,4] = RELU(c)
        y/transpose_2: float[1,4,4,4] = TRANSPOSE(r, [0, 2, 3, 1])
        y/conv_2d_4: float[1,4,4,2] = CONV_2D(y/transpose_2, float[2,3,3,4], none, padding=SAME)
        y: float[1,2,4,4] = TRANSPOSE(y/conv_2d_4, [0, 3, 1, 2])
        """,
        """
        c/transpose_2: float[1,4,4,2] = TRANSPOSE(x, [0, 2, 3, 1])
        c/conv_2d_4: float[1,4,4,4] = CONV_2D(c/transpose_2, float[4,3,3,2], none, padding=SAME)
        r: float[1,4,4,4] = RELU(c/conv_2d_4)
        y/conv_2d_4: float[1,4,4,2] = CONV_2D(r, float[2,3,3,4], none, padding=SAME)
        y: float[1,2,4,4] = TRANSPOSE(y/conv_2d_4, [0, 3, 1, 2])
        """,
    ),
    "merge_reshapes": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        one = Const(int32 [4,8])
        a = Reshape(x, one, T=float, Tshape=int32)
        two = Const(int32 [32])
        y = Reshape(a, two, T=float, Tshape=int32)
        """,
        {},
        """
        a: float[4,8] = RESHAPE(x, [4, 8])
        y: float[32] = RESHAPE(a, [32])
        """,
        """
        y: float[32] = RESHAPE(x, [32])
        """,
    ),
    "fold_affine": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        m = Mul(c, k, T=float)
        y = Add(m, b, T=float)
        """,
        {"w": (3, 3, 2, 4), "k": (4,), "b": (4,)},
        """
        c: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME)
        m: float[1,4,4,4] = MUL(c, float[4])
        y: float[1,4,4,4] = ADD(m, float[4]#2)
        """,
        """
        y: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], float[4], padding=SAME)
        """,
    ),
    "fold_dilations": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        block = Const(int32 [2,2])
        pads = Const(int32 [[2,2],[2,2]])
        crops = Const(int32 [[0,0],[0,0]])
        s = SpaceToBatchND(x, block, pads, T=float, Tblock_shape=int32, Tpaddings=int32)
        c = Conv2D(s, w, T=float, strides=[1,1,1,1], padding="VALID")
        y = BatchToSpaceND(c, block, crops, T=float, Tblock_shape=int32, Tcrops=int32)
        """,
        {"w": (3, 3, 2, 4)},
        """
        s: float[4,4,4,2] = SPACE_TO_BATCH_ND(x, [2, 2], [[2, 2], [2, 2]])
        c: float[4,2,2,4] = CONV_2D(s, float[4,3,3,2], none, padding=VALID)
        y: float[1,4,4,4] = BATCH_TO_SPACE_ND(c, [2, 2], [[0, 0], [0, 0]])
        """,
        """
        y: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME, dilation_h=2, dilation_w=2)
        """,
    ),
    "absorb_padding": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        pads = Const(int32 [[0,0],[1,1],[1,1],[0,0]])
        p = Pad(x, pads, T=float, Tpaddings=int32)
        y = Conv2D(p, w, T=float, strides=[1,1,1,1], padding="VALID")
        """,
        {"w": (3, 3, 2, 4)},
        """
        p: float[1,6,6,2] = PAD(x, int32[4,2])
        y: float[1,4,4,4] = CONV_2D(p, float[4,3,3,2], none, padding=VALID)
        """,
        """
        y: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME)
        """,
    ),
    "recognise_activations": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        zero = Const(float 0.0)
        six = Const(float 6.0)
        a = Maximum(x, zero, T=float)
        y = Minimum(a, six, T=float)
        """,
        {},
        """
        a: float[1,4,4,2] = MAXIMUM(x, 0.0)
        y: float[1,4,4,2] = MINIMUM(a, 6.0)
        """,
        """
        y: float[1,4,4,2] = RELU6(x)
        """,
    ),
    "fuse_activations": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        y = Relu(c, T=float)
        """,
        {"w": (3, 3, 2, 4)},
        """
        c: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME)
        y: float[1,4,4,4] = RELU(c)
        """,
        """
        y: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME, activation=RELU)
        """,
    ),
    "add_missing_biases": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        {"w": (3, 3, 2, 4)},
        """
        y: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME)
        """,
        """
        y: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], float[4], padding=SAME)
        """,
    ),
    "use_eight_bits": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,8])
        y = MatMul(x, w, T=float, _eight_bit=true)
        """,
        {"w": (8, 4)},
        """
        y: float[1,4] = FULLY_CONNECTED(x, float[4,8], none)
        """,
        """
        y: float[1,4] = FULLY_CONNECTED(x, int8[4,8], none, asymmetric_inputs=True)
        """,
    ),
    "take_fewer_pixels": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,8,8,16])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        y = Conv2D(c, v, T=float, strides=[1,2,2,1], padding="SAME")
        """,
        {"w": (3, 3, 16, 16), "v": (1, 1, 16, 16)},
        """
        c: float[1,8,8,16] = CONV_2D(x, float[16,3,3,16], float[16], padding=SAME)
        y: float[1,4,4,16] = CONV_2D(c, float[16,1,1,16], float[16], padding=SAME, stride_h=2, stride_w=2)
        """,
        """
        x/padded: float[1,9,9,16] = PAD(x, int32[4,2])
        c: float[1,4,4,16] = CONV_2D(x/padded, float[16,3,3,16], float[16], padding=VALID, stride_h=2, stride_w=2)
        y: float[1,4,4,16] = CONV_2D(c, float[16,1,1,16], float[16], padding=SAME)
        """,
        earlier=("add_missing_biases",),
    ),
    "reshape_later": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        flat = Const(int32 [16,4])
        r = Reshape(c, flat, T=float, Tshape=int32)
        y = Relu(r, T=float)
        """,
        {"w": (3, 3, 2, 4)},
        """
        c: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME)
        r: float[16,4] = RESHAPE(c, [16, 4])
        y: float[16,4] = RELU(r)
        """,
        """
        c: float[1,4,4,4] = CONV_2D(x, float[4,3,3,2], none, padding=SAME)
        y/active: float[1,4,4,4] = RELU(c)
        y: float[16,4] = RESHAPE(y/active, [16, 4])
        """,
    ),
    "turn_transposed_convolutions": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,8])
        sizes = Const(int32 [1,8,8,8])
        y = Conv2DBackpropInput(sizes, w, x, T=float, strides=[1,2,2,1], padding="SAME")
        """,
        {"w": (2, 2, 8, 8)},
        """
        y: float[1,8,8,8] = TRANSPOSE_CONV([1, 8, 8, 8], float[8,2,2,8], x, padding=SAME, stride_h=2, stride_w=2)
        """,
        """
        y/parts: float[1,4,4,32] = CONV_2D(x, float[32,1,1,8], float[32], padding=VALID)
        y: float[1,8,8,8] = DEPTH_TO_SPACE(y/parts, block_size=2)
        """,
        earlier=("add_missing_biases",),
    ),
    "recognise_leaky_rectifiers": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        zero = Const(float 0.0)
        low = Minimum(x, zero, T=float)
        slope = Const(float 0.25)
        part = Mul(low, slope, T=float)
        high = Relu(x, T=float)
        y = Add(high, part, T=float)
        """,
        {},
        """
        high: float[1,4,4,2] = RELU(x)
        low: float[1,4,4,2] = MINIMUM(x, 0.0)
        part: float[1,4,4,2] = MUL(low, 0.25)
        y: float[1,4,4,2] = ADD(high, part)
        """,
        """
        y: float[1,4,4,2] = LEAKY_RELU(x, alpha=0.25)
        """,
    ),
    "scale_without_convolutions": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,1])
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        {"w": (1, 1, 1, 1)},
        """
        y: float[1,4,4,1] = CONV_2D(x, [[[[0.1257302165031433]]]], [0.0], padding=SAME)
        """,
        """
        y/scaled: float[1,4,4,1] = MUL(x, 0.1257302165031433)
        y: float[1,4,4,1] = ADD(y/scaled, 0.0)
        """,
        earlier=("add_missing_biases",),
    ),
    "reshape_instead_of_transposing": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,1,8])
        perm = Const(int32 [0,2,1,3])
        y = Transpose(x, perm, T=float, Tperm=int32)
        """,
        {},
        """
        y: float[1,1,4,8] = TRANSPOSE(x, [0, 2, 1, 3])
        """,
        """
        y: float[1,1,4,8] = RESHAPE(x, [1, 1, 4, 8])
        """,
    ),
    "choose_whole_rows": Picture(
        """
        zeros = Const(float 0.0)
        axis = Const(int32 [1])
        sizes = Const(int32 [3, 1])
        times = Const(int32 [1, 4])
        x = Placeholder(dtype=float, shape=[3,4])
        s = Sum(x, axis, T=float, Tidx=int32)
        t = Greater(s, zeros, T=float)
        c = Reshape(t, sizes, T=bool, Tshape=int32)
        l = Tile(c, times, T=bool, Tmultiples=int32)
        n = Neg(x, T=float)
        y = Select(l, x, n, T=float)
        """,
        {},
        """
        s: float[3] = SUM(x, [1])
        t: bool[3] = GREATER(s, 0.0)
        c: bool[3,1] = RESHAPE(t, [3, 1])
        l: bool[3,4] = TILE(c, [1, 4])
        n: float[3,4] = NEG(x)
        y: float[3,4] = SELECT_V2(l, x, n)
        """,
        """
        s: float[3] = SUM(x, [1])
        t: bool[3] = GREATER(s, 0.0)
        n: float[3,4] = NEG(x)
        y: float[3,4] = SELECT(t, x, n)
        """,
    ),
    "take_whole_rows": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,8,4,1])
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="VALID")
        """,
        {"w": (3, 4, 1, 8)},
        """
        y: float[1,6,1,8] = CONV_2D(x, float[8,3,4,1], float[8], padding=VALID)
        """,
        """
        x/rows: float[1,8,1,4] = RESHAPE(x, [1, 8, 1, 4])
        y: float[1,6,1,8] = CONV_2D(x/rows, float[8,3,1,4], float[8], padding=VALID)
        """,
        earlier=("add_missing_biases",),
    ),
    "winograd_convolutions": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,16,16,384])
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        {"w": (1, 3, 384, 128)},
        """
        y: float[1,16,16,128] = CONV_2D(x, float[128,1,3,384], float[128], padding=SAME)
        """,
        """
        y/tiles_0: float[1,16,18,384] = PAD(x, int32[4,2])
        y/tiles_1: float[1,16,8,384] = DEPTHWISE_CONV_2D(y/tiles_0, float[1,1,4,384], float[384], padding=VALID, stride_w=2)
        y/tiles_2: float[1,16,8,384] = DEPTHWISE_CONV_2D(y/tiles_0, float[1,1,4,384]#2, float[384], padding=VALID, stride_w=2)
        y/tiles_3: float[1,16,8,384] = DEPTHWISE_CONV_2D(y/tiles_0, float[1,1,4,384]#3, float[384], padding=VALID, stride_w=2)
        y/tiles_4: float[1,16,8,384] = DEPTHWISE_CONV_2D(y/tiles_0, float[1,1,4,384]#4, float[384], padding=VALID, stride_w=2)
        y/tiles_5: float[1,16,8,128] = CONV_2D(y/tiles_1, float[128,1,1,384], float[128], padding=VALID)
        y/tiles_6: float[1,16,8,128] = CONV_2D(y/tiles_2, float[128,1,1,384]#2, float[128]#2, padding=VALID)
        y/tiles_7: float[1,16,8,128] = CONV_2D(y/tiles_3, float[128,1,1,384]#3, float[128], padding=VALID)
        y/tiles_8: float[1,16,8,128] = CONV_2D(y/tiles_4, float[128,1,1,384]#4, float[128], padding=VALID)
        y/tiles_9: float[1,16,8,128] = ADD(y/tiles_6, y/tiles_7)
        y/tiles_10: float[1,16,8,128] = SUB(y/tiles_6, y/tiles_7)
        y/tiles_11: float[1,16,8,128] = ADD(y/tiles_9, y/tiles_5)
        y/tiles_12: float[1,16,8,128] = ADD(y/tiles_10, y/tiles_8)
        y/tiles_13: float[1,16,8,256] = CONCATENATION(y/tiles_11, y/tiles_12, axis=3)
        y/tiles_14: float[16,1,1,2048] = RESHAPE(y/tiles_13, [16, 1, 1, 2048])
        y: float[1,16,16,128] = RESHAPE(y/tiles_14, [1, 16, 16, 128])
        """,
        earlier=("add_missing_biases",),
    ),
    "winograd_training": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,3,128,64])
        y = Conv2D(v, x, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        {"v": (8, 8, 8, 128)},
        """
        y/pad_3: float[64,10,128] = PAD(float[64,8,128], int32[3,2])
        y/slice_6: float[64,8,128] = SLICE(y/pad_3, [0, 0, 0], [64, 8, 128])
        y/slice_9: float[64,8,128] = SLICE(y/pad_3, [0, 1, 0], [64, 8, 128])
        y/slice_12: float[64,8,128] = SLICE(y/pad_3, [0, 2, 0], [64, 8, 128])
        y/concatenation_13: float[64,8,384] = CONCATENATION(y/slice_6, y/slice_9, y/slice_12, axis=2)
        y/reshape_15: float[8,8,3072] = RESHAPE(y/concatenation_13, [8, 8, 3072])
        y/reshape_17: float[512,384] = RESHAPE(y/reshape_15, [512, 384])
        y/reshape_19: float[384,64] = RESHAPE(x, [384, 64])
        y/batch_matmul_20: float[512,64] = BATCH_MATMUL(y/reshape_17, y/reshape_19)
        y: float[8,8,8,64] = RESHAPE(y/batch_matmul_20, [8, 8, 8, 64])
        """,
        """
        y/tiles_0: float[3,8192] = RESHAPE(x, [3, 8192])
        y/tiles_1: float[4,8192] = BATCH_MATMUL(float[4,3], y/tiles_0)
        y/tiles_2: float[1,8192] = SLICE(y/tiles_1, [0, 0], [1, 8192])
        y/tiles_3: float[128,64] = RESHAPE(y/tiles_2, [128, 64])
        y/tiles_4: float[1,8192] = SLICE(y/tiles_1, [1, 0], [1, 8192])
        y/tiles_5: float[128,64] = RESHAPE(y/tiles_4, [128, 64])
        y/tiles_6: float[1,8192] = SLICE(y/tiles_1, [2, 0], [1, 8192])
        y/tiles_7: float[128,64] = RESHAPE(y/tiles_6, [128, 64])
        y/tiles_8: float[1,8192] = SLICE(y/tiles_1, [3, 0], [1, 8192])
        y/tiles_9: float[128,64] = RESHAPE(y/tiles_8, [128, 64])
        y/tiles_10: float[8,8,10,128] = PAD(float[8,8,8,128], int32[4,2])
        y/tiles_11: float[8,8,4,128] = DEPTHWISE_CONV_2D(y/tiles_10, float[1,1,4,128], float[128], padding=VALID, stride_w=2)
        y/tiles_12: float[8,8,4,128] = DEPTHWISE_CONV_2D(y/tiles_10, float[1,1,4,128]#2, float[128], padding=VALID, stride_w=2)
        y/tiles_13: float[8,8,4,128] = DEPTHWISE_CONV_2D(y/tiles_10, float[1,1,4,128]#3, float[128], padding=VALID, stride_w=2)
        y/tiles_14: float[8,8,4,128] = DEPTHWISE_CONV_2D(y/tiles_10, float[1,1,4,128]#4, float[128], padding=VALID, stride_w=2)
        y/tiles_15: float[256,128] = RESHAPE(y/tiles_11, [256, 128])
        y/tiles_16: float[256,64] = BATCH_MATMUL(y/tiles_15, y/tiles_3)
        y/tiles_17: float[8,8,4,64] = RESHAPE(y/tiles_16, [8, 8, 4, 64])
        y/tiles_18: float[256,128] = RESHAPE(y/tiles_12, [256, 128])
        y/tiles_19: float[256,64] = BATCH_MATMUL(y/tiles_18, y/tiles_5)
        y/tiles_20: float[8,8,4,64] = RESHAPE(y/tiles_19, [8, 8, 4, 64])
        y/tiles_21: float[256,128] = RESHAPE(y/tiles_13, [256, 128])
        y/tiles_22: float[256,64] = BATCH_MATMUL(y/tiles_21, y/tiles_7)
        y/tiles_23: float[8,8,4,64] = RESHAPE(y/tiles_22, [8, 8, 4, 64])
        y/tiles_24: float[256,128] = RESHAPE(y/tiles_14, [256, 128])
        y/tiles_25: float[256,64] = BATCH_MATMUL(y/tiles_24, y/tiles_9)
        y/tiles_26: float[8,8,4,64] = RESHAPE(y/tiles_25, [8, 8, 4, 64])
        y/tiles_27: float[8,8,4,64] = ADD(y/tiles_20, y/tiles_23)
        y/tiles_28: float[8,8,4,64] = SUB(y/tiles_20, y/tiles_23)
        y/tiles_29: float[8,8,4,64] = ADD(y/tiles_27, y/tiles_17)
        y/tiles_30: float[8,8,4,64] = ADD(y/tiles_28, y/tiles_26)
        y/tiles_31: float[8,8,4,128] = CONCATENATION(y/tiles_29, y/tiles_30, axis=3)
        y/tiles_32: float[64,1,1,512] = RESHAPE(y/tiles_31, [64, 1, 1, 512])
        y: float[8,8,8,64] = RESHAPE(y/tiles_32, [8, 8, 8, 64])
        """,
    ),
    "widen_narrow_convolutions": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,40,40,6])
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        {"w": (5, 5, 6, 6)},
        """
        y: float[1,40,40,6] = CONV_2D(x, float[6,5,5,6], float[6], padding=SAME)
        """,
        """
        y/wide: float[1,40,20,12] = CONV_2D(x, float[12,5,6,6], float[12], padding=SAME, stride_w=2)
        y: float[1,40,40,6] = RESHAPE(y/wide, [1, 40, 40, 6])
        """,
        earlier=("add_missing_biases",),
    ),
    "write_out_narrow_vectors": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,40,40,3])
        y = Mul(x, k, T=float)
        """,
        {"k": (3,)},
        """
        y: float[1,40,40,3] = MUL(x, float[3])
        """,
        """
        y: float[1,40,40,3] = MUL(x, float[1,40,40,3])
        """,
    ),
    "cut_large_windows": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,16,16,8])
        y = DepthwiseConv2dNative(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        {"w": (7, 7, 8, 1)},
        """
        y: float[1,16,16,8] = DEPTHWISE_CONV_2D(x, float[1,7,7,8], float[8], padding=SAME)
        """,
        """
        y/part_0: float[1,16,16,8] = DEPTHWISE_CONV_2D(x, float[1,4,2,8], float[8], padding=SAME, dilation_h=2, dilation_w=6)
        y/part_1: float[1,16,16,8] = DEPTHWISE_CONV_2D(x, float[1,4,5,8], float[8]#2, padding=SAME, dilation_h=2)
        y/part_1/sum: float[1,16,16,8] = ADD(y/part_0, y/part_1)
        y/part_2: float[1,16,16,8] = DEPTHWISE_CONV_2D(x, float[1,3,7,8], float[8]#2, padding=SAME, dilation_h=2)
        y: float[1,16,16,8] = ADD(y/part_1/sum, y/part_2)
        """,
        earlier=("add_missing_biases",),
    ),
    "share_constants": Picture(
        """
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        k = Const(float[8] [1,2,3,4,5,6,7,8])
        l = Const(float[8] [1,2,3,4,5,6,7,8])
        long = Const(int32 [4,8])
        r = Reshape(x, long, T=float, Tshape=int32)
        a = Maximum(r, k, T=float)
        y = Minimum(a, l, T=float)
        """,
        {},
        """
        r: float[4,8] = RESHAPE(x, [4, 8])
        a: float[4,8] = MAXIMUM(r, float[8])
        y: float[4,8] = MINIMUM(a, float[8]#2)
        """,
        """
        r: float[4,8] = RESHAPE(x, [4, 8])
        a: float[4,8] = MAXIMUM(r, float[8])
        y: float[4,8] = MINIMUM(a, float[8])
        """,
    ),
}
