"""Guessing inputs and outputs: of small graphs in the text form, and of real models whose outputs are known."""

import json

import pytest

from pocketgraph.graph import Signature
from pocketgraph.graph.entry_points import likely_inputs, likely_outputs, main_outputs, sole_outputs, unknown_node_hint
from pocketgraph.graph.node import node_name
from pocketgraph.graph.text_format import parse
from support import model_dir, needs_shared

MNIST = """
    x = Placeholder(dtype=float, shape=[?,784])
    labels = Placeholder(dtype=float, shape=[?,10])
    rate = Placeholder(dtype=float, shape=[])
    w = VariableV2(dtype=float, shape=[784,10])
    w/read = Identity(w, T=float)
    b = VariableV2(dtype=float, shape=[10])
    matmul = MatMul(x, w/read, T=float)
    y = Add(matmul, b, T=float)
    xent = SoftmaxCrossEntropyWithLogits(y, labels, T=float)
    Mean = Mean(xent, axes, T=float)
    axes = Const(int32 [0])
    gradients/grad = MatMul(x, xent:1, T=float)
    train/update = ApplyGradientDescent(w, rate, gradients/grad, T=float)
    ArgMax = ArgMax(y, one, T=float)
    one = Const(int32 1)
    ArgMax_1 = ArgMax(labels, one, T=float)
    Equal = Equal(ArgMax, ArgMax_1, T=int64)
    accuracy = Mean(Equal, axes, T=float)
    summary = ScalarSummary(tag, Mean, T=float)
    tag = Const(string "loss")
    save/names = Const(string ["w"])
    save/SaveV2 = SaveV2(tag, save/names, save/names, w, dtypes=[float])
    init = NoOp(^train/update)
"""


def test_training_leaves_only_the_scores() -> None:
    graph = parse(MNIST)
    assert likely_outputs(graph)[0] == ("y", "ends in a sum")
    assert [name for name, _ in likely_outputs(graph)] == ["y", "ArgMax"]
    assert sole_outputs(graph) == ["y"]


def test_the_pivots_of_a_condition_are_no_outputs() -> None:
    text = """
        x = Placeholder(dtype=float)
        w = Const(float[4,4] 0.5)
        y = MatMul(x, w, T=float)
        axes = Const(int32 [0, 1])
        sum = Sum(y, axes, T=float, Tidx=int32)
        zero = Const(float 0)
        more = Greater(sum, zero, T=float)
        cond/Switch = Switch(more, more, T=bool)
        cond/switch_t = Identity(cond/Switch:1, T=bool)
        cond/switch_f = Identity(cond/Switch:0, T=bool)
        cond/pred_id = Identity(more, T=bool)
        cond/half = Const(float 0.5, ^cond/switch_t)
        cond/Switch_1 = Switch(y, cond/pred_id, T=float)
        cond/Mul = Mul(cond/Switch_1:1, cond/half, T=float)
        cond/Merge = Merge(cond/Switch_1, cond/Mul, T=float, N=2)
    """
    assert [name for name, _ in likely_outputs(parse(text))] == ["cond/Merge"]


def test_inputs_that_meet_weights_come_first() -> None:
    assert [name for name, _ in likely_inputs(parse(MNIST))] == ["x", "labels", "rate"]


def test_a_queue_feeds_the_model_by_its_first_output() -> None:
    text = MNIST.replace("x = Placeholder(dtype=float, shape=[?,784])", "q = Placeholder(dtype=resource)")
    text = text.replace("labels = Placeholder(dtype=float, shape=[?,10])", "batch = QueueDequeueManyV2(q, n)")
    text = text.replace("(x,", "(batch,").replace("labels", "batch:1").replace("batch:1 =", "labels =")
    graph = parse(text + "n = Const(int32 1)\n")
    assert sole_outputs(graph) == ["y"]


def test_a_named_softmax_wins_over_the_logits_beside_it() -> None:
    graph = parse(MNIST + "probabilities = Softmax(y, T=float)\naux = Tanh(y, T=float)\n")
    assert likely_outputs(graph)[0] == ("probabilities", "ends in Softmax, named like a result")
    assert sole_outputs(graph) == ["probabilities"]
    boxes = parse(MNIST + "probabilities = Softmax(y, T=float)\nregression = Tanh(y, T=float)\n")
    assert sole_outputs(boxes) is None


def test_results_that_are_handed_on_under_names_of_their_own_belong_together() -> None:
    """As the Object Detection API exports a detector whose variables are in a checkpoint: its classes end in a sum."""
    ends = {"classes": "Add(matmul, b, T=float)", "boxes": "Tanh(matmul, T=float)", "scores": "Rsqrt(matmul, T=float)"}
    text = "".join(f"{name} = {end}\ndetection_{name} = Identity({name}, T=float)\n" for name, end in ends.items())
    trained = parse(MNIST[: MNIST.index("    y =")] + text)
    assert set(main_outputs(trained)) == set(sole_outputs(trained) or ()) == {f"detection_{name}" for name in ends}
    counted = text.replace("Identity(classes,", "Add(classes, b,")  # from 1
    from_one = parse(MNIST[: MNIST.index("    y =")] + counted)
    assert set(main_outputs(from_one)) == set(sole_outputs(from_one) or ()) == {f"detection_{name}" for name in ends}
    unnamed = trained.map_nodes(lambda node: node.replace(op="Neg") if node.name == "detection_boxes" else node)
    assert sole_outputs(unnamed) is None


def test_what_the_file_states_comes_first() -> None:
    graph = parse(MNIST)
    assert likely_outputs(graph.replace(outputs=["ArgMax:0"]))[0] == ("ArgMax", "stated output")
    signed = graph.replace(signatures={"serving_default": Signature({"image": "x:0"}, {"class": "ArgMax:0"})})
    assert likely_outputs(signed)[0] == ("ArgMax", "signature output")
    assert likely_inputs(signed)[0] == ("x", "signature input")
    assert sole_outputs(signed) == ["ArgMax"]


def test_all_that_the_last_node_gives_is_an_output() -> None:
    """A SavedModel with several outputs, frozen, ends in an IdentityN of them."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float[4,2] 0.5)
        product = MatMul(x, w, T=float)
        sign = Sign(product, T=float)
        call = IdentityN(product, sign, T=[float, float])
    """)
    assert [name for name, _ in likely_outputs(graph)] == ["call", "call:1"]
    assert sole_outputs(graph) == ["call", "call:1"]


def test_second_results_that_only_ops_take_are_no_outputs() -> None:
    moments = "n = FusedBatchNorm(y, s, s, s, s, T=float)\ns = Const(float[10] 0.5)"
    graph = parse("x = Placeholder(dtype=float, shape=[1,4,4,10])\ny = Relu(x, T=float)\n" + moments)
    assert [name for name, _ in likely_outputs(graph)] == ["n"]


def test_a_signature_names_results_by_their_port() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[?,4])\nbest = TopKV2(x, k, T=float)\nk = Const(int32 1)")
    signed = graph.replace(signatures={"serving_default": Signature({"x": "x:0"}, {"class": "best:1"})})
    assert sole_outputs(signed) == ["best:1"]


def test_the_file_name_of_a_saver_is_no_input() -> None:
    graph = parse("""
        saver_filename = Placeholder(dtype=string, shape=[])
        image = Placeholder(dtype=float, shape=[?,4])
        call = StatefulPartitionedCall(image, Tin=[float], Tout=[float])
        save = StatefulPartitionedCall(saver_filename, Tin=[string], Tout=[string])
    """)
    assert [name for name, _ in likely_inputs(graph)] == ["image"]
    assert [name for name, _ in likely_outputs(graph)] == ["call"]


@pytest.mark.parametrize("text", ["", "x = Placeholder(dtype=float)", "c = Const(float 1.0)", "n = NoOp()"])
def test_nothing_to_guess(text: str) -> None:
    graph = parse(text)
    assert likely_outputs(graph) == []
    assert sole_outputs(graph) is None


def test_a_graph_that_refers_to_what_is_not_there_is_no_trouble() -> None:
    graph = parse("y = Relu(gone, T=float)\nz = MatMul(y, away:1, T=float)\nloop = Identity(loop, T=float)")
    assert [name for name, _ in likely_outputs(graph)] == ["z"]


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "mobilenet_v1_025_128", "mtcnn_blaueck", "faced_corrector", "kws_ds_cnn_s", "aiy_visionkit_detect",
        "customvision_recipe", "rust_regression", "unity_3dball", "stylize_quantized", "linreg_frozen", "aggregator_v1",
        "har_developershutt", "utensor_mnist_demo", "pose_mobilenet_v2_small",
    ],
)  # fmt: skip
def test_outputs_of_real_models(name: str) -> None:
    from pocketgraph import formats

    info = json.loads((model_dir(name) / "model.json").read_text())
    graph = formats.load(model_dir(name) / info["file"])
    wanted = {output.split(":")[0] for output in info["outputs"]}
    assert likely_outputs(graph)[0].name in wanted
    assert likely_inputs(graph)[0].name in {i.split(":")[0] for i in info["inputs"]}
    guessed = sole_outputs(graph)
    assert guessed is None or set(map(node_name, guessed)) <= wanted


def test_the_shipping_tower_beats_the_training_tower() -> None:
    graph = parse("""
        pixels = Placeholder(dtype=float, shape=[8,4])
        queue = FIFOQueueV2(component_types=[float])
        batch = QueueDequeueV2(queue, component_types=[float])
        enqueue = QueueEnqueueV2(queue, pixels, Tcomponents=[float])
        image = PlaceholderWithDefault(batch, dtype=float, shape=[?,4])
        v = VariableV2(dtype=float, shape=[4,2])
        train/logits = MatMul(batch, v, T=float)
        train/probabilities = Softmax(train/logits, T=float)
        logits = MatMul(image, v, T=float)
        checked = CheckNumerics(logits, T=float)
        probabilities = Softmax(checked, T=float)
    """)
    assert sole_outputs(graph) == ["probabilities"]
    assert likely_inputs(graph)[0].name == "image"


def test_a_queue_behind_a_placeholders_default_is_no_input() -> None:
    graph = parse("""
        queue = FIFOQueueV2(component_types=[float])
        batch = QueueDequeueV2(queue, component_types=[float])
        image = PlaceholderWithDefault(batch, dtype=float, shape=[?,4])
        w = Const(float [[1], [2], [3], [4]])
        y = MatMul(image, w, T=float)
    """)
    assert [end.name for end in likely_inputs(graph)] == ["image"]


def test_names_of_checkpoint_files_are_no_inputs() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[1], [2], [3], [4]])
        y = MatMul(x, w, T=float)
        none = Const(string "model")
        save/filename = PlaceholderWithDefault(none, dtype=string, shape=[])
        save/Const = PlaceholderWithDefault(save/filename, dtype=string, shape=[])
        saver/Const = Placeholder(dtype=string, shape=[])
    """)
    assert [end.name for end in likely_inputs(graph)] == ["x", "saver/Const"]


def test_batch_statistics_that_branches_give_are_no_rivals_of_the_output() -> None:
    """slim's batch_norm with a fed ``phase_train`` and ``updates_collections=None``."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4,4,3])
        phase = Placeholder(dtype=bool, shape=[])
        w = VariableV2(dtype=float, shape=[1,1,3,2])
        s = VariableV2(dtype=float, shape=[2])
        h = Conv2D(x, w, strides=[1,1,1,1], padding="VALID", T=float)
        way = Switch(h, phase, T=float)
        training = FusedBatchNorm(way:1, s, s, s, s, T=float, is_training=true)
        shipping = FusedBatchNorm(way, s, s, s, s, T=float, is_training=false)
        both = Merge(shipping, training, T=float, N=2)
        mean = Merge(shipping:1, training:1, T=float, N=2)
        variance = Merge(shipping:2, training:2, T=float, N=2)
        embeddings = Relu(both, T=float)
    """)
    assert sole_outputs(graph) == ["embeddings"]


def test_a_training_of_word_vectors_ends_in_the_vectors_not_in_the_loss() -> None:
    """word2vec_basic.py: negative samples are drawn inside of ``nce_loss``."""
    graph = parse("""
        words = Placeholder(dtype=int32, shape=[8])
        labels = Placeholder(dtype=int32, shape=[8,1])
        table = VariableV2(dtype=float, shape=[50,4])
        weights = VariableV2(dtype=float, shape=[50,4])
        axis = Const(int32 0)
        lookup = GatherV2(table, words, axis, Taxis=int32, Tindices=int32, Tparams=float)
        vectors = Identity(lookup, T=float)
        loss/nce_loss/Cast = Cast(labels, SrcT=int32, DstT=int64)
        loss/nce_loss/drawn = LogUniformCandidateSampler(loss/nce_loss/Cast, num_true=1, num_sampled=5, unique=true,
            range_max=50)
        loss/nce_loss/lookup = GatherV2(weights, loss/nce_loss/drawn, axis, Taxis=int32, Tindices=int64, Tparams=float)
        loss/nce_loss/MatMul = MatMul(vectors, loss/nce_loss/lookup, T=float, transpose_b=true)
        loss/sampled_losses/Exp = Exp(loss/nce_loss/MatMul, T=float)
        loss/sampled_losses = Log1p(loss/sampled_losses/Exp, T=float)
        loss/all = Const(int32 [0, 1])
        loss/Mean = Mean(loss/sampled_losses, loss/all, T=float, Tidx=int32)
    """)
    assert sole_outputs(graph) == ["vectors"]


def test_conditions_of_assertions_are_no_outputs() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[1], [2], [3], [4]])
        y = MatMul(x, w, T=float)
        axes = Const(int32 [0, 1])
        zero = Const(float 0)
        all_positive = Greater(y, zero, T=float)
        prediction_all = All(all_positive, axes)
        said = Const(string "negative")
        checked = Assert(prediction_all, said, T=[string])
        z = Neg(y, ^checked, T=float)
    """)
    assert [end.name for end in likely_outputs(graph)] == ["z"]


SERVED = """
    examples = Placeholder(dtype=string, shape=[?])
    names = Const(string [])
    key = Const(string "x")
    none = Const(float [])
    parsed = ParseExample(examples, names, key, none, Nsparse=0, Ndense=1, Tdense=[float], sparse_types=[],
        dense_shapes=[[2]])
    w = Const(float [[1.0, 2.0], [3.0, 4.0]])
    logits = MatMul(parsed, w, T=float)
    scores = Softmax(logits, T=float)
    size = Shape(scores, T=float, out_type=int32)
    labels = Const(string [["no", "yes"]])
    first = StridedSlice(size, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
    zero = Const(int32 [0])
    one = Const(int32 [1])
    times = Pack(first, single, T=int32, N=2)
    single = Const(int32 1)
    classes = Tile(labels, times, T=string, Tmultiples=int32)
"""


def test_an_estimator_that_is_served_takes_its_records_and_answers_with_its_scores() -> None:
    """Not what the records are parsed to, and not the labels, which are the same for all."""
    graph = parse(SERVED)
    assert [name for name, _ in likely_inputs(graph)] == ["examples"]
    assert main_outputs(graph) == ["scores"]


def test_a_parser_behind_a_queue_is_where_training_comes_in() -> None:
    queue = "queue = FIFOQueueV2(component_types=[string])\nexamples = QueueDequeueV2(queue, component_types=[string])"
    graph = parse(SERVED.replace("examples = Placeholder(dtype=string, shape=[?])", queue))
    assert "parsed" in [name for name, _ in likely_inputs(graph)]


AGENT = """
    seen = Placeholder(dtype=float, shape=[?,2])
    w = Const(float [[1.0, 2.0], [3.0, 4.0]])
    hidden = MatMul(seen, w, T=float)
    action = Softmax(hidden, T=float)
    more = MatMul(hidden, w, T=float)
    value = BiasAdd(more, bias, T=float)
    bias = Const(float [1.0, 2.0])
"""


def test_all_that_a_frozen_agent_answers_is_wanted() -> None:
    assert main_outputs(parse(AGENT)) == ["action", "value"]
    assert main_outputs(parse(AGENT).replace(outputs=["value"])) == ["value"]
    training = parse(
        AGENT.replace("w = Const(float [[1.0, 2.0], [3.0, 4.0]])", "w = VariableV2(dtype=float, shape=[2,2])")
    )
    assert main_outputs(training) == ["action"]
    assert main_outputs(parse("c = Const(float 1.0)")) == []


def test_a_retrained_model_keeps_its_new_classes_alone() -> None:
    text = """
        image = Placeholder(dtype=float, shape=[?,2])
        w = Const(float [[1.0, 2.0], [3.0, 4.0]])
        layer = MatMul(image, w, T=float)
        old = MatMul(layer, w, T=float)
        Older = Softmax(old, T=float)
        bottleneck = PlaceholderWithDefault(layer, dtype=float, shape=[?,2])
        new = MatMul(bottleneck, w, T=float)
        final_result = Softmax(new, T=float)
    """
    assert main_outputs(parse(text)) == ["final_result"]


def test_the_class_beside_the_probabilities_is_no_rival_in_training() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?,2])
        w = VariableV2(dtype=float, shape=[2,2])
        logits = MatMul(x, w, T=float)
        probabilities = Softmax(logits, T=float)
        axis = Const(int32 1)
        best = ArgMax(logits, axis, T=float, Tidx=int32, output_type=int64)
        class = ExpandDims(best, axis, T=int64, Tdim=int32)
        classes = AsString(class, T=int64)
    """
    assert sole_outputs(parse(text)) == ["probabilities"]
    words = """
        names = HashTableV2(key_dtype=int64, value_dtype=string)
        unknown = Const(string "?")
        classes = LookupTableFindV2(names, class, unknown, Tin=int64, Tout=string)
    """
    for named in (words, words.replace("V2", "")):  # the latter is of graphs before 2017
        assert sole_outputs(parse(text.replace("classes = AsString(class, T=int64)", named))) == ["probabilities"]
    other = "others = MatMul(logits, w, T=float)\nbest = ArgMax(others"
    assert sole_outputs(parse(text.replace("best = ArgMax(logits", other))) is None


def test_what_quantize_nodes_left_over_is_no_output() -> None:
    """It reads a tensor in eight bits where another node has it already, and leaves the way to its own codes behind."""
    text = """
        x = Placeholder(dtype=float, shape=[1,4])
        w = Const(float[4, 4] [[1, 2, 3, 4], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]])
        kept = MatMul(x, w, T=float)
        y = Softmax(kept, T=float)
        axes = Const(int32 [0])
        row = Const(int32 [-1])
        {0}/x/reshape = Reshape(kept, row, T=float, Tshape=int32)
        {0}/x/min = Min({0}/x/reshape, axes, T=float, Tidx=int32, keep_dims=false)
        {0}/x/max = Max({0}/x/reshape, axes, T=float, Tidx=int32, keep_dims=false)
        {0}/x/quantize = QuantizeV2(kept, {0}/x/min, {0}/x/max, T=quint8, mode="MIN_FIRST")
    """
    assert [name for name, _ in likely_outputs(parse(text.format("layer_eightbit")))] == ["y"]
    assert "layer/x/quantize" in [name for name, _ in likely_outputs(parse(text.format("layer")))]


def test_what_a_result_waits_for_in_a_frozen_graph_is_no_output() -> None:
    """Functions of TensorFlow 2 that were inlined wait for all that their loops leave."""
    text = """
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
        scores = MatMul(x, w, T=float)
        last = Identity(scores, T=float)
        side = Neg(scores, T=float)
        {waited}
        y = Softmax(last{waits}, T=float)
    """
    waiting = parse(text.format(waited="all = NoOp(^side)", waits=", ^all"))
    assert [name for name, _ in likely_outputs(waiting)] == ["y"]
    apart = parse(text.format(waited="", waits=""))
    assert [name for name, _ in likely_outputs(apart)] == ["y", "side"]


def test_what_summaries_show_of_a_layer_does_not_hide_that_it_is_the_answer() -> None:
    """As tf.nn.zero_fraction in an Estimator's networks, and the mean and deviation of predictions."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        labels = Placeholder(dtype=float, shape=[?,3])
        w = VariableV2(dtype=float, shape=[4,3])
        w/read = Identity(w, T=float)
        answer = MatMul(x, w/read, T=float)
        apart = SquaredDifference(answer, labels, T=float)
        axes = Const(int32 [0, 1])
        mean_squared = Mean(apart, axes, T=float)
        zero = Const(float 0)
        share/NotEqual = NotEqual(answer, zero, T=float)
        share/Cast = Cast(share/NotEqual, SrcT=bool, DstT=float)
        share/count = Sum(share/Cast, axes, T=float)
        share/of = Const(float 192)
        share/ratio = RealDiv(share/count, share/of, T=float)
        share/fraction = Identity(share/ratio, T=float)
        center = Mean(answer, axes, T=float)
        from_center = Sub(answer, center, T=float)
        squared = Square(from_center, T=float)
        variance = Mean(squared, axes, T=float)
        deviation = Sqrt(variance, T=float)
        tag = Const(string "a")
        summary = ScalarSummary(tag, share/fraction, T=float)
        summary_1 = ScalarSummary(tag, deviation, T=float)
        summary_2 = ScalarSummary(tag, center, T=float)
        histogram = HistogramSummary(tag, answer, T=float)
        loss = ScalarSummary(tag, mean_squared, T=float)
    """)
    assert sole_outputs(graph) == ["answer"]
    assert [name for name, _ in likely_outputs(graph)] == ["answer"]


def test_shares_whose_mean_alone_is_watched_are_the_answer() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = VariableV2(dtype=float, shape=[4,3])
        w/read = Identity(w, T=float)
        logits = MatMul(x, w/read, T=float)
        shares = Sigmoid(logits, T=float)
        axes = Const(int32 [0, 1])
        usual = Mean(shares, axes, T=float)
        tag = Const(string "a")
        summary = ScalarSummary(tag, usual, T=float)
    """)
    assert sole_outputs(graph) == ["shares"]


@pytest.mark.parametrize(
    ("name", "is_fed", "hint"),
    [
        ("inptu", True, "did you mean 'input'?"),
        ("import/input:0", True, "did you mean 'input'?"),
        ("input:0:0", True, "did you mean 'input'?"),
        ("Mul", True, "did you mean 'logits/MatMul'? the likely input is 'input'"),  # of Inception v3, as is softmax
        ("DecodeJpeg/contents", True, "the likely input is 'input'"),
        ("softmax", False, "the likely output is 'final_result'"),
        ("final", False, "did you mean 'final_result'?"),
    ],
)
def test_a_name_of_another_model_is_answered_with_the_likely_ones(name: str, is_fed: bool, hint: str) -> None:
    graph = parse("""
        input = Placeholder(dtype=float, shape=[?,2])
        w = Const(float[2,2] 0.5)
        logits/MatMul = MatMul(input, w, T=float)
        final_result = Softmax(logits/MatMul, T=float)
    """)
    assert unknown_node_hint(graph, name, is_fed=is_fed) == hint


def test_nothing_is_said_of_names_in_a_graph_of_nothing() -> None:
    assert unknown_node_hint(parse(""), "x", is_fed=True) == ""


def test_what_only_knows_how_large_the_answer_is_counts_as_no_answer() -> None:
    """As the shortest length that a recurrent network over scores finds, in a branch for sequences of one step."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        lengths = Placeholder(dtype=int32, shape=[?])
        zero = Const(int32 0)
        factors = Cast(lengths, SrcT=int32, DstT=float)
        column = ExpandDims(factors, zero, T=float)
        masked = Mul(x, column, T=float)
        weights = VariableV2(dtype=float, shape=[4,3])
        scores = MatMul(masked, weights, T=float)
        sizes = Shape(scores, T=float)
        many = Max(sizes, zero, T=int32)
        is_long = Greater(many, zero, T=int32)
        way = Switch(lengths, is_long, T=int32)
        few = Min(way:1, zero, T=int32)
        order = Const(int32 [1, 0])
        turned = Transpose(scores, order, T=float)
    """)
    assert [name for name, _ in likely_outputs(graph)] == ["turned", "few"]


def test_conditions_of_a_confusion_matrix_are_no_outputs_and_its_picks_lead_to_the_scores() -> None:
    """As the training of TensorFlow's speech commands has one, beside a loss that takes the logits."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        labels = Placeholder(dtype=int64, shape=[?])
        w = VariableV2(dtype=float, shape=[2,3])
        weights = Identity(w, T=float)
        product = MatMul(x, weights, T=float)
        b = VariableV2(dtype=float, shape=[3])
        bias = Identity(b, T=float)
        sums = AddV2(product, bias, T=float)
        loss = SparseSoftmaxCrossEntropyWithLogits(sums, labels, T=float, Tlabels=int64)
        axis = Const(int32 1)
        ArgMax = ArgMax(sums, axis, T=float)
        zero = Const(int64 0)
        check/LessEqual = LessEqual(zero, ArgMax, T=int64)
        all = Const(int32[1] [0])
        check/All = All(check/LessEqual, all)
        check/Assert/AssertGuard/Switch = Switch(check/All, check/All, T=bool)
        check/Assert/AssertGuard/pred_id = Identity(check/All, T=bool)
        check/Assert/AssertGuard/said = Switch(ArgMax, check/Assert/AssertGuard/pred_id, T=int64)
        check/Assert/AssertGuard/Assert = Assert(check/All, check/Assert/AssertGuard/said, T=[int64])
        check/control_dependency = Identity(ArgMax, ^check/Assert/AssertGuard/Assert, T=int64)
        pairs = Pack(labels, check/control_dependency, T=int64, N=2)
    """)
    assert sole_outputs(graph) == ["sums"]


def test_how_many_boxes_a_detector_selects_is_an_output_beside_them() -> None:
    """As ``tf.identity(tf.shape(selected)[0], name="num_detections")``."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[64,8])
        w = Const(float[8,4] 0.5)
        v = Const(float[8,1] 0.25)
        corners = MatMul(x, w, T=float)
        rated = MatMul(x, v, T=float)
        rates = Squeeze(rated, T=float, squeeze_dims=[1])
        most = Const(int32 20)
        overlap = Const(float 0.5)
        kept = NonMaxSuppressionV2(corners, rates, most, overlap)
        axis = Const(int32 0)
        chosen = GatherV2(corners, kept, axis, Tparams=float, Tindices=int32, Taxis=int32)
        detection_boxes = Identity(chosen, T=float)
        best = GatherV2(rates, kept, axis, Tparams=float, Tindices=int32, Taxis=int32)
        detection_scores = Identity(best, T=float)
        size = Shape(kept, T=int32)
        from = Const(int32[1] [0])
        to = Const(int32[1] [1])
        count = StridedSlice(size, from, to, to, T=int32, Index=int32, shrink_axis_mask=1)
        num_detections = Identity(count, T=int32)
    """)
    assert sorted(main_outputs(graph)) == ["detection_boxes", "detection_scores", "num_detections"]


@pytest.mark.parametrize("scope", ["", "other/"])
def test_the_results_of_a_detector_belong_together_in_a_training_too(scope: str) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,4])
        v = VariableV2(dtype=float, shape=[4,4], container="", shared_name="")
        read = Identity(v, T=float)
        h = MatMul(x, read, T=float)
        one = Const(float 1.0)
        added = AddV2(h, one, T=float)
        {scope}detection_classes = Identity(added, T=float)
        {scope}detection_boxes = Sqrt(h, T=float)
        {scope}detection_scores = Exp(h, T=float)
        {scope}num_detections = Identity(h, T=float)
        file = Const(string "model")
        names = Const(string ["v"])
        whole = Const(string [""])
        save = SaveV2(file, names, whole, read, dtypes=[float])
    """)
    found = main_outputs(graph)
    wanted = {"detection_classes", "detection_boxes", "detection_scores", "num_detections"}
    assert (set(found) == wanted) == (scope == "")
