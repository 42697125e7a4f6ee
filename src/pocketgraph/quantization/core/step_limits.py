"""What operations cost, and the shares and limits by which the steps decide: one table, with units.

Nanoseconds were measured on x86 with one thread; what matters are the ratios. A pair of them is the time of starting an
operation and that of each element of its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pocketgraph.litert.cost_model import CHANNELS_AT_A_TIME
from pocketgraph.litert.operator_traits import ARITHMETIC, REDUCTIONS, WEIGHTED
from pocketgraph.litert.program import Operation
from pocketgraph.quantization.core.operator_rules import is_layer, weights

# Samples
FEWEST_SAMPLES_TO_CLIP = 16  # fewer do not show how large values get, so that nothing they show is cut off
FEWEST_SAMPLES = 10  # with fewer, other inputs are sure to reach further
SAMPLES_COMPARED = 16  # that are held against each other to see whether they differ
OUTLIER_REACH = 8.0  # times as far as nine of ten samples, from which a sample is an outlier
MOST_OUTLIERS_SHARE = 0.05  # of the samples; when more reach that far, that is how the data are

# Ranges
INT16_MARGIN_SHARE = (
    1.5  # of the way from the median sample's reach to the farthest, that int16 codes reach beyond that
)
MOST_INT16_MARGIN_SHARE = 1.0  # of all values seen: one bit of sixteen is easily spared
FEW_SCORE_ROWS = 4096  # more of them, as of all places of a picture, show how far they reach
SCORE_MARGIN_SHARE = 0.25  # of the largest score seen
FEW_SAMPLES_MARGIN_SHARE = 0.6  # of all values seen, over the square root of the number of samples
ONE_ROW_MARGIN_SHARE = 1.0  # the same of what has one row a sample, such as pooled features
MOST_ONE_ROW_MARGIN_SHARE = 0.25  # of all values seen

# Sensitivity
MOST_ANALYZED_OPERATIONS = 1500  # with codes; weighing and fitting them takes time as the square of their number
MOST_SENSITIVITY_SAMPLES = 64  # samples
HEAVY_MULTIPLICATIONS = 300_000_000  # of a program from which fewer samples measure the sensitivity of each tensor
HEAVY_SENSITIVITY_SAMPLES = 4
VERY_HEAVY_MULTIPLICATIONS = 2_000_000_000  # of a program from which two samples do, where it gives many scores
MANY_SCORES = 100  # numbers in a sample's scores, over which its noise evens out; of few it differs by the sample
VERY_HEAVY_SENSITIVITY_SAMPLES = 2
MOST_OPERATIONS_WEIGHED = (
    8_000_000  # runs of one, for all samples and tensors together; unrolled loops have many of each
)
SAMPLE_DECIBELS = 3.0  # less noise than a step acts on, with which one sample does: a second would need thrice as much
SAMPLE_DECIBELS_INT16 = 20.0  # the same of int16 codes, which are seldom any louder, and of however few scores
LOUD_TENSOR_SHARE = 0.04  # of all noise, from which a tensor is weighed once more with all of its values
REACH_WORTH = 0.3  # more noise that holding all values seen is worth, where samples differ entirely in their reach
EXTRA_BYTES_OF_FLOAT_WEIGHT = 3  # more than in eight bits
FLOAT_SLOWDOWN = 2  # times its time that a multiplication in float takes more than one of codes, about

# Judging
MOST_JUDGED_SAMPLES = 200  # when nothing is said
JUDGING_MULTIPLICATIONS = 200_000_000_000  # of the float program on all of them, where no limit is to be kept
FEWEST_JUDGED_SAMPLES = 30  # of what there is, however long they take

# What stays in float
FEW_NORMALIZED_ROWS = 16  # of a normalization at the outputs, which are never dear
WIDE_NORMALIZED_ROW = 8  # numbers; of so many, a normalization in float takes less time than one of codes
MULTIPLICATIONS_PER_NORMALIZED_ROW = 2000  # in eight bits, that a row of one in float takes as long as, about (27 ns)
DEAR_TIME_SHARE = 0.1  # of the program's, above which a normalization at the outputs is not left in float
MOST_FLOAT_SCORES = 1 << 16  # elements of a last layer that gives its results in float
PREPARATION_WORK_SHARE = 0.02  # of the program's multiplications that preparing the data may take in float

# Channels
MUCH_NOISE_SHARE = 0.25  # of all noise, from which that of the input is seen to
QUIET_INPUT_DECIBELS = 40.0  # of the input's own noise, from which it is not
INPUT_CHANNELS_AT_A_TIME = 4  # of a convolution, so that copies of an only one cost next to nothing
MOST_COPIED_WEIGHTS_SHARE = 0.15  # of all weights; what copies of the input may add to them
WEAKEST_CHANNEL_SHARE = 1 / 64  # of the strongest channel's reach; a weaker one counts as this strong
DEAD_CHANNEL_RATIO = 256.0  # of the strongest channel's reach to its own, beyond which one is taken for dead
LEAST_EQUALIZATION_GAIN_DB = 20.0  # of a tensor's noise; usual networks gain up to 9, MobileNet v1 at most 15
WORTHWHILE_FACTOR = 2.0  # of a channel; one below this is not worth a change
RELU6_ROOM = 2.0  # times the largest value observed that other samples may reach in front of a RELU6
WIDEST_REPLICATED_CHANNELS = 64  # a wider tensor's noise is averaged away by the layer that reads it
MUCH_SPARED_SHARE = 0.17  # of all noise; what a stretch in float must spare where the noise is not loud
WORTHWHILE_NOISE_SHARE = 0.02  # of all noise; sparing less is not worth a change of the program
CONSTANT_CHANNEL_SHARE = 1e-4  # of a tensor's range; a channel that moves less is constant

# Constants
FEWEST_COMPRESSED_ELEMENTS = 1024  # of a constant, or of a layer's weights; fewer are not worth the loss
MOST_COMPRESSION_NOISE = 10**-3.7  # of a constant's power that its codes may be off by; more and it stays float
MOST_ROW_NOISE = 1e-2  # of the power of a table's middle row that one scale for all rows may make

# Weights without samples
SYNTHETIC_WORK = 1_500_000_000  # multiplications of all made-up inputs together, about
FEWEST_SYNTHETIC, MOST_SYNTHETIC = 8, 64  # made-up inputs
FEWEST_CODED_ELEMENTS = 256  # weights of a layer; fewer are never worth codes
MOST_SPARED_ELEMENTS = 16384  # weights of a layer; more never stay in float for their noise
MOST_SPARED_BYTES_SHARE = 0.01  # of all weights' bytes; what floats of layers that codes would hurt may add
MOST_SPARED_WORK_SHARE = 0.02  # of all multiplications; a layer of more stays no float where codes make it quicker

# Time
CONVERSION_NS = (60.0, 0.05)
FLOAT_NS = (40.0, 0.055)
CODES_NS = (38.0, 0.045)
FLOAT_ADVANTAGE_SHARE = 0.85  # of the time in codes, below which that in float must be to count
FLOAT_NS_OF: Mapping[str, tuple[float, float]] = {  # of operators that take another time than FLOAT_NS
    **dict.fromkeys(("ELU", "EXP", "GELU", "LOG", "LOGISTIC", "TANH"), (50.0, 0.11)),
    "LOG_SOFTMAX": (200.0, 1.1), "SOFTMAX": (100.0, 0.165),
}  # fmt: skip
CODES_NS_OF: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("ADD", "SUB"), (40.0, 0.085)), **dict.fromkeys(("EXP", "GELU", "LOG", "MUL"), (50.0, 0.17)),
    "ABS": (600.0, 2.3), "AVERAGE_POOL_2D": (120.0, 0.12), "LOG_SOFTMAX": (300.0, 0.85), "PRELU": (800.0, 3.1),
    "SOFTMAX": (500.0, 1.7), "SQUARED_DIFFERENCE": (1400.0, 5.6),
}  # fmt: skip
CACHED_ELEMENTS = 1 << 17  # from which floats of two tensors and their result come from memory; codes are a quarter
UNCACHED_FLOAT_NS_PER_ELEMENT = 0.1
SOFTMAX_NS_PER_ROW = {"float": 14.0, "codes": 1.0}  # beside its elements; with codes, exponentials are looked up
PRODUCT_NS = 300.0  # of a product of two tensors, BATCH_MATMUL
PRODUCT_NS_PER_MULTIPLICATION = {"float": 0.01, "codes": 0.11}

# Effort in eight bits, in multiplications of a wide layer
INPUT_CHANNELS_IN_A_BLOCK = 8  # that they take at a time
DEPTHWISE_MULTIPLICATIONS = 8  # for one of a depthwise layer
OUTPUT_MULTIPLICATIONS = 35  # for one more number of a result


def multiplications(operation: Operation) -> int:
    """Multiplications of an operation, about; elements for one that has none."""
    result = operation.outputs[0]
    if not is_layer(operation):
        return result.size
    kernel = weights(operation)
    if operation.code == "TRANSPOSE_CONV":
        return operation.operands[2].size * kernel.size // kernel.shape[3]
    if operation.code == "DEPTHWISE_CONV_2D":
        return result.size * kernel.shape[1] * kernel.shape[2]
    return result.size * (kernel.size // kernel.shape[0])


def total_multiplications(operations: Iterable[Operation]) -> int:
    """Multiplications of all of these together."""
    return sum(multiplications(operation) for operation in operations)


def sensitivity_samples(operations: Iterable[Operation], scores: int) -> int:
    """How many samples at most measure what the codes of each tensor do.

    Args:
        operations: of the float program.
        scores: how many numbers each of its outputs is judged by has, at least.
    """
    work = total_multiplications(operations)
    if work > VERY_HEAVY_MULTIPLICATIONS and scores >= MANY_SCORES:
        return VERY_HEAVY_SENSITIVITY_SAMPLES
    return HEAVY_SENSITIVITY_SAMPLES if work > HEAVY_MULTIPLICATIONS else MOST_SENSITIVITY_SAMPLES


def weighed_samples(tensors: int, operations: int) -> int:
    """How many samples are worth their time to weigh ``tensors`` in, each with half of the ``operations`` or so."""
    return max(MOST_OPERATIONS_WEIGHED // max(tensors * operations, 1), HEAVY_SENSITIVITY_SAMPLES)


def judged_samples(operations: Iterable[Operation], *, has_limit: bool) -> int:
    """How many samples at most a model is judged on when nothing is said: fewer where that takes long and only informs.

    Args:
        operations: of the float program.
        has_limit: whether what is found decides if the model may lose so much.
    """
    affordable = JUDGING_MULTIPLICATIONS // max(total_multiplications(operations), 1)
    return MOST_JUDGED_SAMPLES if has_limit else min(max(affordable, FEWEST_JUDGED_SAMPLES), MOST_JUDGED_SAMPLES)


def int8_effort(operation: Operation) -> int:
    """What an operation costs in eight bits, about, in multiplications of a wide layer.

    Channels that do not fill a block cost as much as a full one, and a depthwise layer makes less of each load.
    """
    result = operation.outputs[0]
    if operation.code not in WEIGHTED:
        return multiplications(operation)
    kernel, channels = weights(operation), result.shape[-1]
    if operation.code == "DEPTHWISE_CONV_2D":
        each = DEPTHWISE_MULTIPLICATIONS * kernel.size // channels
    else:
        inputs = kernel.shape[-1]
        each = kernel.size // (kernel.shape[0] * inputs) * _in_blocks(inputs, INPUT_CHANNELS_IN_A_BLOCK)
    return result.size // channels * _in_blocks(channels, CHANNELS_AT_A_TIME) * (each + OUTPUT_MULTIPLICATIONS)


def nanoseconds(operation: Operation, *, in_codes: bool) -> float:
    """The time of an operation without weights, about."""
    result, form = operation.outputs[0], "codes" if in_codes else "float"
    size = sum(value.size for value in operation.outputs)
    if operation.code == "BATCH_MATMUL" and operation.inputs[0] is not None:
        inner = operation.inputs[0].shape[-2 if operation.options.get("adj_x") else -1]
        return PRODUCT_NS + PRODUCT_NS_PER_MULTIPLICATION[form] * result.size * inner
    if operation.inputs and operation.code in REDUCTIONS:
        size = operation.inputs[0].size if operation.inputs[0] is not None else size
    usual, special = (CODES_NS, CODES_NS_OF) if in_codes else (FLOAT_NS, FLOAT_NS_OF)
    start, each = special.get(operation.code, usual)
    if operation.code in ARITHMETIC and not in_codes and size >= CACHED_ELEMENTS:
        moving = [value for value in operation.inputs if value is not None and value.constant is None]
        each = UNCACHED_FLOAT_NS_PER_ELEMENT if len(moving) > 1 else each
    rows = result.size // max(result.shape[-1], 1) if operation.code == "SOFTMAX" and result.shape else 0
    return start + each * size + SOFTMAX_NS_PER_ROW[form] * rows


def conversion_nanoseconds(elements: int) -> float:
    """The time of converting a tensor to codes, or back."""
    return CONVERSION_NS[0] + CONVERSION_NS[1] * elements


def _in_blocks(count: int, block: int) -> int:
    """The number rounded up to whole blocks."""
    return -(-count // block) * block
