"""What things cost: the one table of figures by which it is decided what runs where, and what is worth doing.

Each line is a name, a value, its unit and what it says. Times are those of one core of a processor of 2020; their
proportions count. ``benchmarks/cost_model.py`` measures again what can be measured by itself; the other figures are
limits that were found by trying several values on whole models.
"""

from __future__ import annotations

# Calling LiteRT, or not (runtime/planning)

PART_CALL = 7.0  # µs: calling a part of another engine
PART_TENSOR = 0.8  # µs: every tensor that goes into a part or comes out of it
NODE_CALL = 0.8  # µs: a small node on the reference engine, on some hundred elements
CURVED_NODE_CALL = 2.5  # µs: likewise, of an op that computes exponentials
WEIGHT_PRODUCT = 1 / 2500  # µs: what each weight of a product adds
UNKNOWN_PRODUCT = 1000.0  # µs: a heavy node whose size nobody knows
LEAST_PART_NODES = 3  # nodes: compute ops of a part that pay for the call
LEAST_SMALL_PART_NODES = 7  # nodes: likewise, where each goes over SMALL_TENSOR elements at most
SMALL_TENSOR = 512  # elements: what NumPy goes over in a microsecond
FEW_SCORES = 4096  # scores: what NumPy sorts out in a millisecond; making LiteRT ready for it takes ten
SUPPRESSED_BOXES = 8  # boxes: from which NonMaxSuppression on LiteRT pays
FEW_SUMMED = 128  # elements: that Python adds up sooner than NumPy does

# Making a quicker way ready (after so many calls)

DIRECT_CALLS_AFTER = 8  # calls: of one part with arrays like these, before its direct way is taken
PREPARED_AFTER = 2  # runs: of an executable, after which looking for its quickest way pays
WRITTEN_OUT_AFTER = 12  # runs: of steps, after which they are written out as a Python function
WRITTEN_OUT_FROM = 2  # steps: that are worth writing out
UPGRADED_AFTER = 32  # runs: after which a tenth of a second for opening a model anew is well spent

# Answering calls of other sizes by the reference engine (runtime/planning/reference_answers.py, numpy_time.py), which
# calls kernels the first time, on memory that is new: about twice what benchmarks/cost_model.py finds

ANSWERED_SHARE = 0.5  # share: of what planning the first sizes took, up to which NumPy answers the next (it takes half)
ANSWERED_AGAIN = 0.25  # share: likewise, by the first answer, up to which NumPy gives one more: it takes half of that
ANSWERED_MODULE = 500.0  # µs: importing a module of kernels
ANSWERED_STEP = 25.0  # µs: a node that NumPy computes, as it is called the first time
ANSWERED_PRODUCT = 1 / 25000  # µs: what each multiplication in a product of matrices adds
ANSWERED_ELEMENT = 1 / 1200  # µs: what each element of a result adds, and twice as many that are laid out under windows
PLANNED_STEP = 25.0  # µs: making a step of the reference engine

# Planning for several sizes of a call at once (runtime/planning/sizes/open_sizes.py, session_plans.py)

LEAST_PLANS = 3  # plans: of single sizes, before sizes are left open, where a plan takes little time
LEAST_SPENT = 0.1  # seconds: what planning has to have taken then, for all but the first
LEAST_PRICE = 0.05  # seconds: what one plan has to take for sizes to be left open from the second one on
LATER_SHARE = 0.5  # share: of the first plan's time, which imports what planning takes, that the second one would take
OPENED_TRIES = 2  # runs: with open sizes by which these are judged: the first imports kernels, and compiles loop bodies
WAITED = 0.1  # seconds: that a call waits for a program to take its sizes, before it gets a plan of its own

# Comparing compiled parts with the reference engine (runtime/certificates)

CHECKED_AT_ONCE = 1000.0  # µs: of comparisons, up to which first results wait for them
CHECKED_SHARE = 0.01  # share: of the time that a process has computed, which comparisons may take besides
CHECKED_NODE = 50.0  # µs: an operation of a part
CHECKED_PRODUCT = 1 / 800  # µs: what each multiplication, or step for an element, adds
WARM_RUNS = 3  # runs: of the parts of a plan that an earlier process compiled, before one is compared
PLANNED_AGAIN = 200_000.0  # µs: about what planning a graph again takes, to learn the nodes of such a part
MOST_NOTED = 16 << 20  # bytes: of what went into and came out of a part, that are kept to be compared later

# Opening executables (litert/executable.py)

REPEATED_FROM = 4 << 20  # bytes: of weights read again by later steps of a loop, from which packing them once pays
PACKED_FROM = 8 << 20  # bytes: of constants, from which mapping packed weights is faster than packing them again
LENT_FROM = 1 << 20  # bytes: of a part's inputs and results, from which copying them takes 0.1 ms
LENT_WORK = 64  # multiplications: of a part, for each byte of those, up to which copies are a tenth of its time
LIGHT_OPERATION = 25_000  # multiplications: of an average operation (1 µs), below which one thread is faster

# Compiling in two tiers (runtime/planning/tiered_compilation.py)

TILED_LATER_FROM = 4 << 20  # bytes: of weights that go into tiles, for which first results do not wait (30 ms)
TILED_AFTER = 16  # runs: of a part, after which compiling it with tiles is likely to be won back

# Choosing engines (runtime/part_engines)

LARGE_PART = 4_000_000  # multiplications: of a part (40 µs), from which other engines are measured
MEASURED_ROUNDS = 11  # rounds: that are enough to tell which of two engines is faster
MOST_MEASURED_ROUNDS = 33  # rounds: of which so many are to be undisturbed
FEWEST_MEASURED_ROUNDS = 5  # rounds: undisturbed, that will do when it takes too long
FEWEST_LONG_ROUNDS = 3  # rounds: undisturbed, that will do when it takes twice as long, as each is of one long run
MOST_MEASURED_SECONDS = 3.0  # seconds: on the clock, after which fewer rounds do
ROUND_SECONDS = 0.02  # seconds: that a program runs in a round, at least
UNSTEADY = 1.25  # share: of its least time, from which a typical round says more of the machine than of the program
DISTURBED_SHARE = 0.05  # share: of a round, that other threads waited for a processor, from which it does not count
MEASURING = 1_000_000.0  # µs: about what measuring all engines takes
CLOSE_TIMES = 1.1  # share: of the quickest engine's time, up to which the next one is measured beside it once more
LEAST_SPEEDUP = 0.97  # share: of LiteRT's time, up to which another engine runs a part in its place

# Unrolling (runtime/unrolling)

MOST_NODES = 5000  # nodes: of one graph that are written out; planning takes about 100 µs for each
MOST_ROUNDS = 20_000  # rounds: of a loop that is written out in part; counting them takes a second
MOST_WRITTEN = 2000  # rounds: that are written out by themselves
MOST_IN_CHUNK = 300  # nodes: of several rounds as one part; compiled in 100 ms, run in the time of several calls

# Parts (litert/engine.py)

MOST_OPERATORS = 100_000  # operators: of one part; LiteRT opens them in 80 µs each, some files of more not in minutes

# Quantized graphs (runtime/eight_bit/arithmetic_choice.py)

MOST_SEARCHED = 500_000_000  # multiplications: of a run, up to which ranges are searched for while running
FEW_SEARCHED_LAYERS = 12  # layers: below which ranges are searched for however long the run
MOST_FIXED = 50_000_000  # multiplications: of a run, up to which fixed ranges are rounded to as the original does
MANY_PRODUCTS_PER_SUM = 1000  # multiplications: for each sum, from which rounding it as the original does is cheap
DEEP_LAYERS = (
    16  # layers: from which codes that are rounded otherwise add up (25 convolutions: 22 codes off, 4 of one: 1)
)
MOST_LAYERS_PER_RANGE = 2  # layers: for each range found while running, from which the fast kernels are near enough

# LiteRT programs (litert/rewriting, litert/lowerings)

MOVED_NUMBER = 16  # multiplications: that take as long as moving one number
ADDED_PART = 4  # elements: of a window, that take as long as adding one part of a window to the others
COPIED_PART = 6  # elements: of a window, that take as long as copying the image, or a slice of it
LEAST_CONVOLUTION = 50_000  # multiplications: of a convolution (1 µs), below which wider ones gain nothing
WIDER_SHARE = 0.9  # share: of the former work, below which several pixels are taken together
TWICE_THE_CHANNELS = 1.5  # share: of the time that a kernel of twice as many channels takes (AVX-512)
TWICE_THE_CHANNELS_SHALLOW = 1.3  # share: likewise, with few input channels
SHALLOW_CHANNELS = 8  # channels: of the input, that count as few there
NARROW_VECTOR = 32  # channels: up to which a vector is written out for all pixels
FEW_PRELU_CHANNELS = 16  # channels: below which PRELU does not fill the processor's registers
MOST_ADDED_ZEROS = 4  # share: of a transposed convolution's multiplications, beyond which it stays
CHANNELS_AT_A_TIME = 16  # channels: that XNNPACK's kernels compute in a block (8 in its oldest ones)
FEWEST_CODED_CHANNELS = 3  # channels: windows over fewer are slower on quantized values, or hardly faster
FEWEST_CODED_PRODUCTS = 30  # multiplications: for each value in or out, from which eight bits pay
MOST_RESPONSE_CHANNELS = 512  # channels: beyond which the band of a response normalization takes longer than powers
FEW_ROW_ELEMENTS = 32  # elements: of a window's row, below which laying the whole window out is quicker
DEPTHWISE_WINDOWS = 3, 4, 9, 25  # elements: of XNNPACK's depthwise kernels; smaller windows are filled up
MOST_RESIZE_TAPS = 8  # pixels: that are added for one; each is an operation

# Winograd's convolutions (litert/rewriting/winograd.py), on processors with AVX-512

FEWEST_TILED_CHANNELS = 32  # channels: in and out of a convolution, below which its tiles' products are too narrow
TILED_PRODUCT = 0.58  # share: of a multiplication in a larger window, that one in a product of matrices takes
ROWS_OF_A_PRODUCT = 7  # elements: rows of a matrix that XNNPACK multiplies at once
TILED_WEIGHT = 19  # multiplications: that take as long as reading a weight of a tile's products
TILED_ELEMENT = 10  # multiplications: that take as long as making one element of a transform
MOVED_PER_MEGABYTE = 1.5  # multiplications: that this takes more for each megabyte of the result
SMALL_OPERATION = 25_000  # multiplications: that calling one more operation (9,000), and compiling it, is worth
MOVED_BY_SEVERAL = 1.5  # share: of one thread's time that transforms take several, as if these shared it evenly
CALLED_BY_SEVERAL = 2.0  # share: likewise, that calling operations takes: each waits for all threads
SEVERAL_SHARE = 1.05  # share: of the plain convolution's time, beyond which several threads do without tiles
TILED_SHARE = 0.95  # share: of the plain convolution's time, up to which tiles are worth it
FEW_LAID_OUT = 64  # elements: of a window, up to which NumPy multiplies what lies under all windows sooner than LiteRT
LONG_LAID_OUT = 2  # share: of windows to elements of a window, from which NumPy multiplies larger ones sooner, too
MOST_TURNED = 128  # channels: of results, up to which it does; LiteRT turns windows in the time of 128 columns
LEAST_NUMPY_GRADIENT = 500_000  # multiplications: of such a gradient (100 µs), below which taking it out pays nothing
LEAST_NUMPY_NORM = 1_000_000  # elements: of images that a training normalizes, from which NumPy takes 0.7 of the time
LEAST_TRAINED_LAYER = 20_000_000  # multiplications: of a wide convolution that is trained, from which two steps pay
LEAST_SHALLOW_LAYER = 5_000_000  # multiplications: likewise, of images with fewer than SHALLOW_CHANNELS
WITHOUT_TILES_SHARE = (
    1.2  # share: of the plain convolution's time, from which on a trained one is quicker without tiles
)
POOLED_WITHOUT_TILES_SHARE = 0.94  # share: likewise, of one with its max pool, which moves a quarter of its results
LAID_OUT_SHARE = 1.5  # share: of the plain convolution's time, that laying windows out for computed weights takes
TILED_AT_ONCE = 4_500_000  # bytes: of tiles and their products, of images that are taken together (second-level cache)
LARGER_TILE_SHARE = 0.9  # share: of the time of tiles of two, up to which tiles of four, less exact, are taken

# Batches (litert/sizes/microbatches.py)

LEAST_MICROBATCH_BYTES = 1 << 20  # bytes: of a picture's largest value, from which a batch is computed part by part
MICROBATCH_WEIGHTS = 64 << 20  # bytes: of weights, that a picture or more is computed for each time they are read
MICROBATCH_READS = 0.05  # bytes: of weights, that may be read again for each multiplication: MobileNet v1 takes 0.03
FEWER_READS = 0.4  # share: of that, up to which two pictures of MobileNet v1 take 0.95 of one by one
UNEVEN_MICROBATCHES = 1.1  # share: of even turns, up to which some threads may compute one part more than others

# The same on OpenVINO (exporting/onnx/tiled_convolutions.py), in multiplications of its plain convolutions

OPENVINO_PRODUCT = 0.9  # multiplications: that one in a product of matrices takes
OPENVINO_WEIGHT = 24  # multiplications: that take as long as reading a weight of the tiles' products
OPENVINO_ELEMENT = 7.5  # multiplications: that take as long as moving one element
OPENVINO_PER_MEGABYTE = 2.3  # multiplications: that this takes more for each megabyte of all tiles
OPENVINO_LARGEST = 16_000_000  # bytes: of all tiles, beyond which it takes no longer
OPENVINO_SHARE = 0.85  # share: of the plain convolution's time, up to which tiles are worth it
