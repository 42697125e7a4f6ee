"""Which outputs make a model whole, and which one stands out."""

import numpy as np
import pytest

from pocketgraph.graph.entry_points import likely_outputs, main_outputs, other_ends, sole_outputs
from pocketgraph.graph.text_format import parse
from support import with_weights

BODY = """
    x = Placeholder(dtype=float, shape=[?,8,8,3])
    w = VariableV2(dtype=float, shape=[3,3,3,2])
    w/read = Identity(w, T=float)
    conv = Conv2D(x, w/read, T=float)
    b = VariableV2(dtype=float, shape=[2])
    logits = BiasAdd(conv, b, T=float)
    axis = Const(int32 -1)
"""


def test_a_pick_beside_its_scores_is_no_rival() -> None:
    graph = parse(f"""{BODY}
        probabilities = Softmax(logits, T=float)
        SemanticPredictions = ArgMax(logits, axis, T=float, Tidx=int32, output_type=int64)
    """)
    assert sole_outputs(graph) == ["probabilities"]
    assert main_outputs(graph) == ["probabilities"]


def test_the_old_end_of_a_retrained_model_is_not_left_out() -> None:
    retrained = """
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float[4, 4] [[1, 2, 3, 4], [3, 4, 1, 2], [5, 6, 0, 1], [7, 8, 2, 0]])
        layer = MatMul(x, w, T=float)
        kept = Identity(layer, T=float)
        logits = MatMul(layer, w, T=float)
        old = Softmax(logits, T=float)
        bottleneck = PlaceholderWithDefault(kept, dtype=float, shape=[?,4])
        product = MatMul(bottleneck, w, T=float)
        final_result = Softmax(product, T=float)
    """
    assert main_outputs(parse(retrained)) == ["final_result"]
    assert other_ends(parse(retrained), ["final_result"]) == []


def test_a_second_head_is_a_main_output() -> None:
    heads = f"""{BODY}
        classes = Softmax(logits, T=float)
        boxes = Sigmoid(logits, T=float)
        size = Sum(logits, axis, T=float, Tidx=int32)
    """
    graph = with_weights(heads, w=np.ones((3, 3, 3, 2), np.float32), b=np.ones(2, np.float32))
    assert main_outputs(parse(heads)) == ["classes"]  # of training, which has many ends
    assert sole_outputs(graph) is None
    assert main_outputs(graph) == ["classes", "boxes"]
    assert other_ends(graph, ["classes", "boxes"]) == ["size"]
    assert other_ends(graph, ["classes"], least=4.5) == ["boxes"]


TRAINED = """
    x = Placeholder(dtype=float, shape=[?,8,8,3])
    y = Placeholder(dtype=float, shape=[?,8,8,2])
    w = VariableV2(dtype=float, shape=[3,3,3,2])
    read = Identity(w, T=float)
    logits = Conv2D(x, read, T=float, strides=[1,1,1,1], padding="SAME")
    rows = Const(int32[2] [-1, 2])
"""


def test_logits_that_are_shaped_for_a_loss_are_no_output() -> None:
    """As U-Nets of 2017 have it: shares made by hand, and rows of all places' logits for the loss."""
    graph = parse(f"""{TRAINED}
        powers = Exp(logits, T=float)
        axis = Const(int32 3)
        sums = Sum(powers, axis, T=float, Tidx=int32, keep_dims=true)
        shares = RealDiv(powers, sums, T=float)
        flat = Reshape(logits, rows, T=float, Tshape=int32)
        labels = Reshape(y, rows, T=float, Tshape=int32)
        softmax_cross_entropy_with_logits_sg/Reshape = Reshape(flat, rows, T=float, Tshape=int32)
        softmax_cross_entropy_with_logits_sg = SoftmaxCrossEntropyWithLogits(
            softmax_cross_entropy_with_logits_sg/Reshape, labels, T=float)
    """)
    assert sole_outputs(graph) == ["shares"]
    assert main_outputs(graph) == ["shares"]


def test_what_a_loss_computes_is_no_output_but_what_it_takes_is() -> None:
    graph = parse(f"""{TRAINED}
        logistic_loss/zeros = ZerosLike(logits, T=float)
        logistic_loss/Select = Maximum(logits, logistic_loss/zeros, T=float)
        logistic_loss/sub = Sub(logistic_loss/Select, y, T=float)
    """)
    assert main_outputs(graph) == ["logits"]


def test_results_that_are_exactly_as_likely_are_taken_together() -> None:
    """A detector's, in a graph that was trained: one of them alone would be of no use."""
    ends = f"""{TRAINED}
        places = Const(int32[2] [0, 1])
        axis = Const(int32 0)
        boxes = GatherV2(logits, places, axis, Tparams=float, Tindices=int32, Taxis=int32)
        scores = GatherV2(logits, places, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """
    assert main_outputs(parse(ends)) == ["boxes", "scores"]
    assert sole_outputs(parse(ends)) == ["boxes", "scores"]
    other = ends + "        somewhere = GatherV2(logits, places, axis, Tparams=float, Tindices=int32, Taxis=int32)\n"
    assert main_outputs(parse(other)) == ["boxes", "scores"]
    assert sole_outputs(parse(other)) is None


def test_the_next_states_of_a_streaming_network_are_outputs() -> None:
    graph = parse(f"""{BODY}
        previous_state_h = Placeholder(dtype=float, shape=[1,2])
        u = VariableV2(dtype=float, shape=[2,2])
        u/read = Identity(u, T=float)
        kept = MatMul(previous_state_h, u/read, T=float)
        sum = AddV2(logits, kept, T=float)
        new_state_h = Tanh(sum, T=float)
        probabilities = Softmax(sum, T=float)
    """)
    assert sole_outputs(graph) == ["probabilities", "new_state_h"]
    assert main_outputs(graph) == ["probabilities", "new_state_h"]
    one_more = [*graph, *parse("state_of_mind = Placeholder(dtype=float, shape=[1,2])")]
    assert sole_outputs(graph.replace(one_more)) == ["probabilities", "new_state_h"]  # nothing takes it


def test_a_generator_gives_its_pictures_and_not_what_its_judge_says() -> None:
    graph = parse("""
        noise = Placeholder(dtype=float, shape=[?,4])
        g = VariableV2(dtype=float, shape=[4,8])
        g/read = Identity(g, T=float)
        generator/layer = MatMul(noise, g/read, T=float)
        generator/pictures = Sigmoid(generator/layer, T=float)
        real = Placeholder(dtype=float, shape=[?,8])
        d = VariableV2(dtype=float, shape=[8,1])
        d/read = Identity(d, T=float)
        discriminator/layer = MatMul(real, d/read, T=float)
        discriminator/prob = Sigmoid(discriminator/layer, T=float)
        discriminator_1/layer = MatMul(generator/pictures, d/read, T=float)
        discriminator_1/prob = Sigmoid(discriminator_1/layer, T=float)
    """)
    assert main_outputs(graph) == ["generator/pictures"]


def adversarial(judged: str = "", *, steps: tuple[str, str] = ("fool", "judge")) -> str:
    """A network and one that judges its results, each with an update of its own unless ``steps`` are the same."""
    return f"""
        z = Placeholder(dtype=float, shape=[?,4])
        w = VariableV2(dtype=float, shape=[4,8])
        w/read = Identity(w, T=float)
        painter/layer = MatMul(z, w/read, T=float)
        painter/Tanh = Tanh(painter/layer, T=float)
        real = Placeholder(dtype=float, shape=[?,8])
        v = VariableV2(dtype=float, shape=[8,3])
        v/read = Identity(v, T=float)
        referee/layer = MatMul(real, v/read, T=float)
        referee/Sigmoid = Sigmoid(referee/layer, T=float)
        referee_1/layer = MatMul(painter/Tanh, v/read, T=float)
        referee_1/Sigmoid = Sigmoid(referee_1/layer, T=float)
        rate = Const(float 0.1)
        into_pictures = MatMul(referee_1/Sigmoid, v/read, T=float, transpose_b=true)
        into_w = MatMul(z, into_pictures, T=float, transpose_a=true)
        update_w = ApplyGradientDescent(w, rate, into_w, T=float)
        {steps[0]} = NoOp(^update_w)
        update_v = ApplyGradientDescent(v, rate, v, T=float)
        {f"{steps[1]} = NoOp(^update_v)" if steps[0] != steps[1] else ""}
        {judged}
    """


def test_a_generator_is_known_by_what_else_is_judged_whatever_it_is_called() -> None:
    assert main_outputs(parse(adversarial())) == ["painter/Tanh"]
    assert sole_outputs(parse(adversarial())) == ["painter/Tanh"]


def test_what_a_penalty_mixes_is_not_what_a_generator_gives() -> None:
    graph = parse(
        adversarial("""
        mixed = AddV2(real, painter/Tanh, T=float)
        referee_2/layer = MatMul(mixed, v/read, T=float)
        referee_2/Sigmoid = Sigmoid(referee_2/layer, T=float)
    """)
    )
    assert main_outputs(graph) == ["painter/Tanh"]


def test_an_actor_gives_the_actions_that_a_critic_takes_beside_the_state() -> None:
    text = adversarial().replace("referee/layer = MatMul(real,", "referee/layer = MatMul(tried,")
    text = text.replace("MatMul(painter/Tanh,", "MatMul(done,")
    graph = parse(
        text
        + """
        axis = Const(int32 1)
        tried = ConcatV2(z, real, axis, T=float, N=2)
        done = ConcatV2(z, painter/Tanh, axis, T=float, N=2)
    """
    )
    assert main_outputs(graph) == ["painter/Tanh"]


def test_a_decoder_that_one_step_trains_with_its_encoder_judges_nothing() -> None:
    lines = [line for line in adversarial(steps=("train", "train")).splitlines() if "train = NoOp" not in line]
    graph = parse("\n".join([*lines, "train = NoOp(^update_w, ^update_v)"]))
    assert main_outputs(graph) == ["referee/Sigmoid"]


def test_what_is_handed_on_under_a_name_of_its_own_is_the_likeliest_output() -> None:
    text = f"""{BODY}
        decoder/transpose = Transpose(logits, order, T=float, Tperm=int32)
        order = Const(int32 [1, 0])
        decoder/picked = ArgMax(logits, one, T=float, Tidx=int32, output_type=int32)
        one = Const(int32 1)
        NAME = Identity(decoder/picked, T=int32)
    """
    assert likely_outputs(parse(text.replace("NAME", "answer")))[0].name == "answer"
    for given in ("Identity_1", "concat", "concat_2"):  # tf.concat of one value hands it on
        assert likely_outputs(parse(text.replace("NAME", given)))[0].name != given
    assert likely_outputs(parse(text.replace("NAME", "loss")))[0].name != "loss"


def test_a_largest_value_that_is_handed_on_to_be_watched_is_no_likelier_output() -> None:
    text = f"""{BODY}
        layer/logits = MatMul(logits, square, T=float)
        square = Const(float[2,2] [[1, 2], [3, 4]])
        axes = Const(int32 [0, 1])
        largest = Max(logits, axes, T=float, Tidx=int32)
        watched = Identity(largest, T=float)
    """
    assert [end.name for end in likely_outputs(with_weights(text))] == ["layer/logits", "watched"]


def test_names_of_their_own_say_nothing_of_inputs_and_of_inner_layers() -> None:
    text = f"""{BODY}
        v = VariableV2(dtype=float, shape=[1,1,2,2])
        v/read = Identity(v, T=float)
        layer = Conv2D(logits, v/read, T=float)
        shares = Softmax(layer, T=float)
        first = StridedSlice(x, from, to, by, T=float, Index=int32)
        from = Const(int32 [0])
        to = Const(int32 [1])
        by = Const(int32 [1])
        example_picture = Identity(first, T=float)
    """
    assert sole_outputs(parse(text)) == ["shares"]
    with_features = f"{text}\n        features = Identity(logits, T=float)"
    assert likely_outputs(parse(with_features))[0].name == "shares"


def test_what_another_step_trains_without_its_judge_is_no_generator() -> None:
    """A denoiser that is trained by clean pictures, before a classifier that is trained on them."""
    text = adversarial().replace("painter", "denoiser").replace("referee", "classes")
    graph = parse(text.replace("ApplyGradientDescent(w, rate, into_w", "ApplyGradientDescent(w, rate, w"))
    assert main_outputs(graph) == ["classes/Sigmoid"]


ANSWERS = """
    x = Placeholder(dtype=float, shape=[?,4])
    labels = Placeholder(dtype=float, shape=[?,3])
    w = VariableV2(dtype=float, shape=[4,3])
    product = MatMul(x, w, T=float)
    shares = Softmax(product, T=float)
    one = Const(float 1.0)
    tiny = Const(float 1e-10)
"""


@pytest.mark.parametrize(
    "loss",
    [
        "log = Log(shares, T=float)\nloss = Mul(labels, log, T=float)",
        "low = Minimum(shares, one, T=float)\nclipped = Maximum(low, tiny, T=float)\nlog = Log(clipped, T=float)\n"
        "loss = Mul(labels, log, T=float)",
        "log = Log(shares, T=float)\nloss = Mul(labels, log, T=float)\nrest = Sub(one, shares, T=float)\n"
        "log_rest = Log(rest, T=float)\nno = Sub(one, labels, T=float)\nother = Mul(no, log_rest, T=float)",
        "far = Square(shares, T=float)\nloss = Mul(labels, far, T=float)\nrest = Sub(one, shares, T=float)\n"
        "margin = Maximum(rest, tiny, T=float)\nnear = Square(margin, T=float)\nother = Mul(labels, near, T=float)",
    ],
    ids=["cross entropy", "clipped cross entropy", "binary cross entropy", "contrastive loss"],
)
def test_what_a_loss_written_by_hand_takes_is_the_answer(loss: str) -> None:
    assert sole_outputs(parse(f"{ANSWERS}\n{loss}")) == ["shares"]


@pytest.mark.parametrize("op", ["Square", "Log"])
@pytest.mark.parametrize("difference", ["Sub", "SquaredDifference"])
def test_a_square_or_logarithm_that_labels_are_compared_with_is_the_answer(op: str, difference: str) -> None:
    graph = parse(f"{ANSWERS}\nenergy = {op}(shares, T=float)\nloss = {difference}(energy, labels, T=float)")
    assert sole_outputs(graph) == ["energy"]


def test_a_logarithm_compared_with_that_of_labels_is_the_losss() -> None:
    graph = parse(f"""{ANSWERS}
        log = Log(shares, T=float)
        log_labels = Log(labels, T=float)
        loss = SquaredDifference(log, log_labels, T=float)
    """)
    assert sole_outputs(graph) == ["shares"]


def test_a_logarithm_that_no_label_meets_is_an_answer() -> None:
    assert sole_outputs(parse(f"{ANSWERS}\nlog = Log(shares, T=float)")) == ["log"]


def test_the_next_value_of_a_variable_is_no_rival_of_the_output() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = VariableV2(dtype=float, shape=[4,3])
        logits/layer = MatMul(x, w, T=float)
        axes = Const(int32[2] [0, 1])
        logits/least = Min(logits/layer, axes, T=float, Tidx=int32)
        logits/low = VariableV2(dtype=float, shape=[])
        logits/difference = Sub(logits/low, logits/least, T=float)
        logits/updated = AssignSub(logits/low, logits/difference, T=float)
        high = Const(float 6.0)
        logits/quantized = FakeQuantWithMinMaxVars(logits/layer, logits/updated, high)
    """)
    assert sole_outputs(graph) == ["logits/quantized"]


def test_the_constant_scale_of_a_batch_norm_is_nothing_that_a_judge_takes() -> None:
    """As slim writes one without scale: moving averages that no step trains stand beside the gradient's way."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4,4,3])
        w = VariableV2(dtype=float, shape=[1,1,3,2])
        w/read = Identity(w, T=float)
        conv = Conv2D(x, w/read, T=float)
        scale = Const(float [1, 1])
        beta = VariableV2(dtype=float, shape=[2])
        mean = VariableV2(dtype=float, shape=[2])
        variance = VariableV2(dtype=float, shape=[2])
        norm = FusedBatchNorm(conv, scale, beta, mean, variance, T=float, is_training=false)
        axes = Const(int32 [1, 2])
        pooled = Mean(norm, axes, T=float, Tidx=int32)
        probabilities = Softmax(pooled, T=float)
        wrong = FusedBatchNormGrad(norm, conv, scale, mean, variance, T=float, is_training=false)
        shape = Const(int32 [1, 1, 3, 2])
        into_w = Conv2DBackpropFilter(x, shape, wrong, T=float)
        rate = Const(float 0.1)
        update_w = ApplyGradientDescent(w, rate, into_w, T=float)
        train = NoOp(^update_w)
    """)
    assert main_outputs(graph) == ["probabilities"]


def test_the_moving_average_of_a_batch_norm_written_by_hand_is_no_judge() -> None:
    """Its decay is a constant, and what scales it comes from other weights."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = VariableV2(dtype=float, shape=[4,3])
        w/read = Identity(w, T=float)
        layer = MatMul(x, w/read, T=float)
        mean = VariableV2(dtype=float, shape=[3])
        mean/read = Identity(mean, T=float)
        gamma = VariableV2(dtype=float, shape=[3])
        gamma/read = Identity(gamma, T=float)
        epsilon = Const(float[3] 0.001)
        flag = Placeholder(dtype=bool)
        s = Switch(gamma/read, flag, T=float)
        softened = Add(s, epsilon, T=float)
        scale = Rsqrt(softened, T=float)
        scaled = Mul(layer, scale, T=float)
        offset = Mul(mean/read, scale, T=float)
        probabilities = Sub(scaled, offset, T=float)
        decay = Const(float 0.99)
        kept = Mul(mean/read, decay, T=float)
        average = Assign(mean, kept, T=float)
        rate = Const(float 0.1)
        into_gamma = Mul(mean/read, decay, T=float)
        update_gamma = ApplyGradientDescent(gamma, rate, into_gamma, T=float)
        train = NoOp(^update_gamma)
    """)
    assert main_outputs(graph) == ["probabilities"]


def test_scores_are_found_where_labels_reach_a_learning_rate_that_is_kept_and_a_pick_is_cast() -> None:
    """As a tagger of TensorFlow 1.0 trains its embedding: rows of it are updated with a gradient times a variable."""
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[?])
        labels = Placeholder(dtype=int32, shape=[?])
        table = VariableV2(dtype=float, shape=[9,3])
        table/read = Identity(table, T=float)
        rows = Gather(table/read, x, Tparams=float, Tindices=int32)
        w = VariableV2(dtype=float, shape=[3,4])
        w/read = Identity(w, T=float)
        scores = MatMul(rows, w/read, T=float)
        loss = SparseSoftmaxCrossEntropyWithLogits(scores, labels, T=float, Tlabels=int32)
        axis = Const(int32 1)
        best = ArgMax(scores, axis, T=float, Tidx=int32, output_type=int64)
        class = Cast(best, SrcT=int64, DstT=int32)
        same = Equal(class, labels, T=int32)
        hits = Cast(same, SrcT=bool, DstT=float)
        all = Const(int32[1] 0)
        accuracy = Mean(hits, all, T=float, Tidx=int32)
        rate = VariableV2(dtype=float, shape=[])
        rate/read = Identity(rate, T=float)
        gradients/scores = MatMul(loss:1, w/read, T=float, transpose_b=true)
        SGD/update_table/mul = Mul(gradients/scores, rate/read, T=float)
        SGD/update_table = ScatterSub(table, x, SGD/update_table/mul, T=float, Tindices=int32)
    """)
    assert main_outputs(graph) == ["scores"]


@pytest.mark.parametrize("op", ["Select", "SelectV2"])
def test_a_policy_that_explores_gives_the_scores_of_its_actions(op: str) -> None:
    graph = parse(f"""{BODY}
        axes = Const(int32[2] [1, 2])
        values = Mean(logits, axes, T=float, Tidx=int32)
        best = ArgMax(values, axis, T=float, Tidx=int32, output_type=int64)
        sizes = Shape(best, T=int64, out_type=int32)
        chance = RandomUniform(sizes, T=int32, dtype=float)
        share = VariableV2(dtype=float, shape=[])
        explores = Less(chance, share, T=float)
        low = Const(int64 0)
        high = Const(int64 2)
        other = RandomUniformInt(sizes, low, high, T=int32, Tout=int64)
        action = {op}(explores, other, best, T=int64)
    """)
    assert main_outputs(graph) == ["values"]


def test_a_loss_without_labels_is_no_output_but_what_it_averages() -> None:
    """As of heads that a penalty keeps small, each with its share; an average for each example is an answer."""
    graph = parse(f"""{BODY}
        other = Conv2D(x, w/read, T=float)
        boxes = ConcatV2(other, logits, axis, T=float, Tidx=int32, N=2)
        square = Square(logits, T=float)
        axes = Const(int32[4] [0, 1, 2, 3])
        first = Mean(square, axes, T=float, Tidx=int32)
        square_1 = Square(boxes, T=float)
        second = Mean(square_1, axes, T=float, Tidx=int32)
        share = Const(float 0.0001)
        small = Mul(second, share, T=float)
        loss = AddV2(first, small, T=float)
    """)
    assert main_outputs(graph)[0] in ("boxes", "logits")
    assert {name for name, _ in likely_outputs(graph)} >= {"boxes", "logits"}
    assert "loss" not in {name for name, _ in likely_outputs(graph)}
    pooled = parse(f"""{BODY}
        places = Const(int32[2] [1, 2])
        mean = Mean(logits, places, T=float, Tidx=int32)
    """)
    assert main_outputs(pooled) == ["mean"]


@pytest.mark.parametrize("far", ["Square", "Abs", "SquaredDifference"])
def test_an_autoencoder_gives_the_picture_that_its_loss_compares_with_what_it_took(far: str) -> None:
    """Where two answers are compared, as a cycle of generators does, nothing tells which one is meant."""

    def ends(of: str) -> list[str]:
        near = f"near = Sub({of}, y, T=float)\n" if far != "SquaredDifference" else ""
        graph = parse(f"""{BODY}
            y = Sigmoid(logits, T=float)
            x_1 = {"Identity(x" if of == "x_1" else "Tanh(logits"}, T=float)
            {near}
            far = {far}({"near" if near else f"{of}, y"}, T=float)
            axes = Const(int32[4] [0, 1, 2, 3])
            loss = Mean(far, axes, T=float, Tidx=int32)
        """)
        return [name for name, _ in likely_outputs(graph)]

    assert ends("x_1") == ["y"]
    assert ends("logits") == ["x_1", "loss"]


FROZEN = """
    x = Placeholder(dtype=float, shape=[?,4])
    w = Const(float[4,4] [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [5, 6, 7, 8]])
    logits = MatMul(x, w, T=float)
    one = Const(int32 1)
"""


def test_all_results_of_a_frozen_function_are_its_outputs_in_order() -> None:
    graph = parse(f"""{FROZEN}
        Identity_1 = Identity(logits, T=float)
        picked = ArgMax(x, one, T=float, Tidx=int32, output_type=int32)
        Identity_10 = Identity(picked, T=int32)
        shares = Softmax(logits, T=float)
        Identity = Identity(shares, T=float)
        Identity_2 = Identity(logits, T=float)
        last = Tanh(Identity_2, T=float)
        {" ".join(f"Identity_{place} = Identity(last, T=float)" + chr(10) for place in range(3, 10))}
    """)
    results = ["Identity", "Identity_1", *(f"Identity_{place}" for place in range(3, 11))]
    assert sole_outputs(graph) == main_outputs(graph) == results


@pytest.mark.parametrize(
    ("left", "found"),
    [
        ("Identity = Identity(x, T=float)\nIdentity_1 = Identity(logits, T=float)", ["Identity_1"]),
        ("Identity_1 = Identity(one, T=int32)\nIdentity = Identity(logits, T=float)", ["Identity"]),
        ("Identity_2 = Identity(mean, T=float)\nIdentity = Identity(logits, T=float)", ["Identity"]),
    ],
    ids=["input", "constant", "mean"],
)
def test_identities_that_are_left_over_are_no_results(left: str, found: list[str]) -> None:
    graph = parse(f"{FROZEN}\nmean = Mean(logits, one, T=float, Tidx=int32)\n{left}")
    assert sole_outputs(graph) == main_outputs(graph) == found


def test_what_a_state_begins_like_is_no_output() -> None:
    """A Keras layer that skips masked steps begins with zeros like what the first step gives."""
    graph = parse(f"""{FROZEN}
        first = Tanh(logits, T=float)
        zeros = ZerosLike(first, T=float)
        steps = Add(zeros, x, T=float)
        last = Max(steps, one, T=float, Tidx=int32)
        given = Identity(last, T=float)
    """)
    assert sole_outputs(graph) == ["given"]


def test_the_pivots_of_a_case_are_no_outputs() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        k = Placeholder(dtype=int32, shape=[])
        index = _SwitchN(k, k, T=int32, num_outs=2)
        pivot = Identity(index:1, T=int32)
        which = _SwitchN(x, k, T=float, num_outs=2)
        first = Tanh(which, T=float)
        second = Relu(which:1, T=float)
        y = Merge(first, second, T=float, N=2)
    """)
    assert [end.name for end in likely_outputs(graph)] == ["y"]
