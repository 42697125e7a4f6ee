"""What of a graph ships: the network behind records of tf.Example, and for one sample where it took so many."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from command_line import call
from pocketgraph import Session, save
from pocketgraph.apps.shipping.detection_heads import outputs_before_selection
from pocketgraph.apps.shipping.input_sizes import benchmark_command
from pocketgraph.apps.shipping.preparation import whole_model
from pocketgraph.apps.shipping.record_entry import numbers_entry
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.apps.shipping.single_batch import fixed_batch, for_one_sample
from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.graph import Graph, Signature, const, node_name
from pocketgraph.graph.text_format import parse

RNG = np.random.default_rng(0)
PARSER = """
    examples = Placeholder(dtype=string, shape=[?])
    parsed = ParseExampleV2(examples, names, none, dense, none, preset, preset, num_sparse=0, sparse_types=[],
        ragged_value_types=[], ragged_split_types=[], Tdense=[float, {kind}], dense_shapes=[[3], []])
"""


def constants(**values: object) -> list[object]:
    return [const(name, np.asarray(value)) for name, value in values.items()]


def parser(kind: str) -> list[object]:
    nothing, keys = np.array([], object), np.array([b"x", b"n"], object)
    preset = nothing if kind == "string" else np.zeros(0, np.int64)
    found = [const("names", nothing), const("none", nothing), const("dense", keys),
             const("preset", np.zeros(0, np.float32)), const("other", preset)]  # fmt: skip
    return [*found, *parse(PARSER.format(kind=kind).replace("preset, preset", "preset, other"))]


def test_features_that_are_numbers_take_the_place_of_records() -> None:
    graph = Graph([*parser("int64"), *constants(w=RNG.normal(size=(3, 4)).astype(np.float32)), *parse("""
        count = Cast(parsed:1, SrcT=int64, DstT=float)
        ones = Const(int32 -1)
        column = ExpandDims(count, ones, T=float, Tdim=int32)
        scores = MatMul(parsed, w, T=float)
        y = Mul(scores, column, T=float)
    """)])  # fmt: skip
    entry = numbers_entry(graph, ["y"])
    assert entry is not None
    assert entry.tensors == ("parsed_0", "parsed_1")
    x, n = RNG.normal(size=(2, 3)).astype(np.float32), np.int64([2, 3])
    with Session(entry.graph) as cut, Session(graph) as whole:
        (wanted,) = whole.run(["y"], {"parsed:0": x, "parsed:1": n})
        (found,) = cut.run(["y"], {"parsed_0": x, "parsed_1": n})
    np.testing.assert_array_equal(found, wanted)


def test_records_with_texts_ship_behind_their_lookups_with_the_embeddings(tmp_path: pathlib.Path) -> None:
    graph = Graph([*parser("string"), *constants(table=RNG.normal(size=(5, 2)).astype(np.float32),
                                                 w=RNG.normal(size=(5, 4)).astype(np.float32)), *parse("""
        bucket = StringToHashBucketFast(parsed:1, num_buckets=5)
        axis = Const(int32 0)
        embedded = GatherV2(table, bucket, axis, Tparams=float, Tindices=int64, Taxis=int32)
        last = Const(int32 1)
        features = ConcatV2(parsed, embedded, last, N=2, T=float, Tidx=int32)
        y = MatMul(features, w, T=float)
    """)])  # fmt: skip
    assert numbers_entry(graph, ["y"]) is None
    pocketgraph.save(graph, tmp_path / "net.pb")
    shipped = ship(tmp_path / "net.pb", tmp_path / "out")
    assert any("take 'x', 'n' out of the record" in line for line in shipped.app)
    feeds = {"parsed:0": RNG.normal(size=(1, 3)).astype(np.float32), "bucket:0": np.array([3])}
    with pocketgraph.Session(graph) as whole, pocketgraph.Session(tmp_path / "out" / "model.tflite") as file:
        (wanted,) = whole.run(["y:0"], feeds)
        names = {node_name(name): value for name, value in feeds.items()}
        (found,) = file.run(["y"], names)
    np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-2)  # of weights in sixteen bits


def test_the_pieces_of_a_sparse_feature_are_no_numbers_to_feed() -> None:
    graph = parse("""
        examples = Placeholder(dtype=string, shape=[?])
        names = Const(string[0] [])
        key = Const(string "zip")
        parsed = ParseExample(examples, names, key, Nsparse=1, Ndense=0, Tdense=[], sparse_types=[int64],
                              dense_shapes=[])
        nothing = Const(int64 0)
        ids = SparseToDense(parsed, parsed:2, parsed:1, nothing, T=int64, Tindices=int64)
        y = Cast(ids, SrcT=int64, DstT=float)
    """)
    assert numbers_entry(graph, ["y"]) is None


def test_decision_trees_are_refused_in_one_sentence(tmp_path: pathlib.Path) -> None:
    trees = pathlib.Path(__file__).parents[1] / "fixtures" / "boosted_trees" / "numbers"
    with pytest.raises(UsageError, match="decision trees"):
        ship(trees, tmp_path / "out")


def test_a_graph_without_records_is_left_alone() -> None:
    assert numbers_entry(parse("x = Placeholder(dtype=float, shape=[?,2])\ny = Relu(x, T=float)"), ["y"]) is None


def classifier(batch: int, *, flat: str, pools: bool = False) -> Graph:
    joined = """
        summed = Sum(hot, rows, T=float, Tidx=int32, keep_dims=true)
        left = Sub(hot, summed, T=float)"""
    return Graph([*constants(w=RNG.normal(size=(12, 3)).astype(np.float32)), *parse(f"""
        x = Placeholder(dtype=float, shape=[{batch},2,2,3])
        flat = Const(int32 {flat})
        rows = Const(int32 [0])
        pixels = Reshape(x, flat, T=float, Tshape=int32)
        hot = Relu(pixels, T=float){joined if pools else ""}
        logits = MatMul({"left" if pools else "hot"}, w, T=float)
        y = Softmax(logits, T=float)
    """)])  # fmt: skip


def test_a_fixed_batch_becomes_one_sample() -> None:
    graph = classifier(4, flat="[4, 12]")
    assert fixed_batch(graph, ["y"]) == 4
    single = for_one_sample(graph, ["y"])
    assert single is not None
    x = RNG.normal(size=(4, 2, 2, 3)).astype(np.float32)
    with Session(graph) as whole, Session(single) as one:
        (wanted,) = whole.run(["y"], {"x": x})
        for at in range(4):
            np.testing.assert_allclose(one.run(["y"], {"x": x[at : at + 1]})[0][0], wanted[at], rtol=1e-6)


def test_a_batch_whose_samples_meet_stays_as_it_is() -> None:
    assert for_one_sample(classifier(4, flat="[4, 12]", pools=True), ["y"]) is None


@pytest.mark.parametrize("pools", [False, True])
def test_labels_fit_the_scores_of_each_sample_of_a_batch(pools: bool, tmp_path: pathlib.Path) -> None:
    graph = classifier(8, flat="[8, 12]", pools=pools)
    x = RNG.normal(size=(60, 2, 2, 3)).astype(np.float32)
    with Session(graph) as session:
        right = [int(session.run(["y"], {"x": np.repeat(row[None], 8, axis=0)})[0][0].argmax()) for row in x]
    np.savez(tmp_path / "data.npz", x=x, labels=np.array(right))
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    save(graph, tmp_path / "model.pb")
    told: list[str] = []
    made = ship(tmp_path / "model.pb", tmp_path / "out", tmp_path / "data.npz", labels=tmp_path / "labels.txt",
                notify=told.append)  # fmt: skip
    assert any("takes 8 samples at a time" in note for note in told)
    assert "100.0% before" in made.tried[-1].words


DETECTOR = """
    x = Placeholder(dtype=float, shape=[1,4,4,3])
    box_layer = Conv2D(x, box_weights, T=float, strides=[1, 1, 1, 1], padding="VALID")
    box_head = BiasAdd(box_layer, box_biases, T=float)
    score_layer = Conv2D(x, score_weights, T=float, strides=[1, 1, 1, 1], padding="VALID")
    score_head = BiasAdd(score_layer, score_biases, T=float)
    rows = Const(int32 [4, 4])
    boxes = Reshape(box_head, rows, T=float, Tshape=int32)
    all = Const(int32 [-1])
    flat = Reshape(score_head, all, T=float, Tshape=int32)
    scores = Sigmoid(flat, T=float)
    most = Const(int32 2)
    overlap = Const(float 0.5)
    least = Const(float 0.1)
    chosen = NonMaxSuppressionV3(boxes, scores, most, overlap, least, T=float)
    axis = Const(int32 0)
    found = GatherV2(boxes, chosen, axis, Tparams=float, Tindices=int32, Taxis=int32)
    beside = Relu(score_head, T=float)
"""


def detector() -> Graph:
    weights = {f"{name}_weights": RNG.normal(size=(3, 3, 3, size)).astype(np.float32)
               for name, size in (("box", 4), ("score", 1))}  # fmt: skip
    biases = {f"{name}_biases": np.zeros(size, np.float32) for name, size in (("box", 4), ("score", 1))}
    return Graph([*constants(**weights, **biases), *parse(DETECTOR)])


def test_a_decoder_of_sequences_is_the_apps(tmp_path: pathlib.Path) -> None:
    weights = RNG.normal(size=(3, 5)).astype(np.float32)
    graph = Graph([
        *constants(weights=weights),
        *parse("""
            x = Placeholder(dtype=float, shape=[12, 3])
            scores = MatMul(x, weights, T=float)
            shape = Const(int32 [12, 1, 5])
            steps = Reshape(scores, shape, T=float, Tshape=int32)
            length = Const(int32 [12])
            decoded = CTCGreedyDecoder(steps, length, T=float)
            text = SparseToDense(decoded, decoded:2, decoded:1, none, T=int64, Tindices=int64)
            none = Const(int64 -1)
        """),
    ])  # fmt: skip
    assert outputs_before_selection(graph, ["text"]) == ["steps"]
    save(graph, tmp_path / "model.pb")
    told: list[str] = []
    shipment = ship(tmp_path / "model.pb", tmp_path / "out", outputs=["text"], notify=told.append)
    assert any(
        "in front of the decoder of sequences ships, which gives steps; the rest is the app's" in line for line in told
    )
    assert not shipment.doubt
    with pytest.raises(PocketgraphError, match="cut in front of the decoder, which is then the app's: outputs=steps"):
        pocketgraph.export(tmp_path / "model.pb", tmp_path / "x.tflite", outputs=["text"])


def test_what_only_tells_the_sizes_of_a_detectors_heads_is_none_of_them() -> None:
    """As tf.shape(features)[0] tells for how many pictures boxes are reshaped."""
    layers = """
        layer = Conv2D(x, feature_weights, T=float, strides=[1, 1, 1, 1], padding="SAME")
        bias = BiasAdd(layer, feature_biases, T=float)
        features = Relu(bias, T=float)
        sizes = Shape(features, T=float, out_type=int32)
        first = Const(int32 [0])
        last = Const(int32 [1])
        one = Const(int32 [1])
        count = StridedSlice(sizes, first, last, one, T=int32, Index=int32)
        four = Const(int32 [4])
        per = Const(int32 [4])
        times = Mul(count, per, T=int32)
        zero = Const(int32 0)
        rows = ConcatV2(times, four, zero, T=int32, Tidx=int32, N=2)
    """
    text = DETECTOR.replace("Conv2D(x, ", "Conv2D(features, ").replace("rows = Const(int32 [4, 4])", "") + layers
    weights = {f"{name}_weights": RNG.normal(size=(3, 3, 3, size)).astype(np.float32)
               for name, size in (("box", 4), ("score", 1), ("feature", 3))}  # fmt: skip
    biases = {"box_biases": np.zeros(4, np.float32), "score_biases": np.zeros(1, np.float32),
              "feature_biases": np.zeros(3, np.float32)}  # fmt: skip
    graph = Graph([*constants(**weights, **biases), *parse(text)])
    assert outputs_before_selection(graph, ["found"]) == ["boxes", "scores"]


def test_a_detector_ships_in_front_of_the_selection_of_boxes(tmp_path: pathlib.Path) -> None:
    graph = detector()
    assert outputs_before_selection(graph, ["found"]) == ["boxes", "scores"]
    assert outputs_before_selection(graph, ["beside", "found"]) == ["beside", "boxes", "scores"]
    assert outputs_before_selection(graph, ["beside"]) is None
    save(graph, tmp_path / "model.pb")
    told: list[str] = []
    ship(tmp_path / "model.pb", tmp_path / "out", outputs=["found"], notify=told.append)
    assert any("in front of the selection of boxes" in note for note in told)
    x = RNG.normal(size=(1, 4, 4, 3)).astype(np.float32)
    with Session(graph, engine="reference") as whole, Session(str(tmp_path / "out" / "frozen.pb")) as cut:
        wanted = whole.run(["boxes", "scores"], {"x": x})
        for one, other in zip(cut.run(["boxes", "scores"], {"x": x}), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_what_a_loop_over_pictures_gathers_in_front_of_a_selection_is_no_head() -> None:
    """As tf.map_fn does it, picture by picture: nothing can be fetched out of a loop's body."""
    nodes = [node for node in detector() if node.name not in ("chosen", "found")]
    graph = Graph([*nodes, *parse("""
        entered = Enter(boxes, T=float, frame_name="pictures")
        judged = Enter(scores, T=float, frame_name="pictures")
        likely = Where(judged, T=float)
        places = Squeeze(likely, T=int64, squeeze_dims=[1])
        some = GatherV2(entered, places, axis, Tparams=float, Tindices=int64, Taxis=int32)
        theirs = GatherV2(judged, places, axis, Tparams=float, Tindices=int64, Taxis=int32)
        chosen = NonMaxSuppressionV3(some, theirs, most, overlap, least, T=float)
        kept = GatherV2(some, chosen, axis, Tparams=float, Tindices=int32, Taxis=int32)
        found = Exit(kept, T=float)
    """)])  # fmt: skip
    assert outputs_before_selection(graph, ["found"]) == ["boxes", "scores"]


def test_what_is_gathered_by_its_score_in_front_of_a_selection_is_no_head() -> None:
    """As a threshold in front of each class's selection does it."""
    nodes = [node for node in detector() if node.name not in ("chosen", "found")]
    graph = Graph([*nodes, *parse("""
        is_likely = Greater(scores, least, T=float)
        likely = Where(is_likely, T=bool)
        places = Squeeze(likely, T=int64, squeeze_dims=[1])
        some = GatherV2(boxes, places, axis, Tparams=float, Tindices=int64, Taxis=int32)
        theirs = GatherV2(scores, places, axis, Tparams=float, Tindices=int64, Taxis=int32)
        chosen = NonMaxSuppressionV3(some, theirs, most, overlap, least, T=float)
        found = GatherV2(some, chosen, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """)])  # fmt: skip
    assert outputs_before_selection(graph, ["found"]) == ["boxes", "scores"]


@pytest.mark.parametrize("sides", ["8,8", "?,?"])
def test_a_model_of_one_picture_without_a_batch_ships(sides: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "photos").mkdir()
    for at in range(20):
        pixels = RNG.integers(0, 256, (8, 8, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{at}.png")
    graph = Graph([
        *constants(weights=RNG.normal(size=(3, 3, 3, 4)).astype(np.float32)),
        *parse(f"""
            x = Placeholder(dtype=float, shape=[{sides},3])
            axis = Const(int32 0)
            batch = ExpandDims(x, axis, T=float, Tdim=int32)
            layer = Conv2D(batch, weights, T=float, strides=[1, 1, 1, 1], padding="VALID")
            axes = Const(int32 [1, 2])
            mean = Mean(layer, axes, T=float, Tidx=int32)
            y = Softmax(mean, T=float)
        """),
    ])  # fmt: skip
    save(graph, tmp_path / "model.pb")
    told: list[str] = []
    how = {"input_mean": 0.0, "input_std": 255.0}
    made = ship(tmp_path / "model.pb", tmp_path / "out", tmp_path / "photos", notify=told.append, **how)
    assert "of 8 samples" in made.tried[-1].words
    assert not any("samples at a time" in note for note in told)
    (source,) = [node for node in pocketgraph.load(tmp_path / "out" / "model.tflite") if node.op == "Placeholder"]
    assert source.shape().dims == (8, 8, 3)


SERIES = """
    series = Placeholder(dtype=float, shape=[?,?,4])
    axis = Const(int32 [1])
    mean = Mean(series, axis, T=float, Tidx=int32)
    y = MatMul(mean, w, T=float)
"""


def test_a_file_with_a_made_up_length_is_not_called_ready(tmp_path: pathlib.Path) -> None:
    graph = Graph([*constants(w=RNG.normal(size=(4, 2)).astype(np.float32)), *parse(SERIES)])
    save(graph, tmp_path / "model.pb")
    open_one = ship(tmp_path / "model.pb", tmp_path / "out")
    assert "Do not ship" in open_one.verdict
    assert 'shapes={"series": (1, 1, 4)}' in open_one.verdict
    told = ship(tmp_path / "model.pb", tmp_path / "told", shapes={"": (1, 20, 4)})
    assert "Do not ship" not in told.verdict
    with pytest.raises(UsageError, match=r"\(1, 20, 5\)} does not fit"):
        ship(tmp_path / "model.pb", tmp_path / "other", shapes={"series": (1, 20, 5)})
    with pytest.raises(UsageError, match="no input 'serie'"):
        ship(tmp_path / "model.pb", tmp_path / "other", shapes={"serie": (1, 20, 4)})


def test_a_waveform_of_any_length_is_not_called_ready_but_a_batch_of_numbers_is(tmp_path: pathlib.Path) -> None:
    waveform = parse("""
        wave = Placeholder(dtype=float, shape=[?])
        frames = Const(int32 [1, 1, -1, 1])
        line = Reshape(wave, frames, T=float)
        found = Conv2D(line, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        axes = Const(int32 [1, 2])
        y = Mean(found, axes, T=float, keep_dims=false)
    """)
    save(Graph([*waveform, *constants(w=RNG.normal(size=(1, 9, 1, 3)).astype(np.float32))]), tmp_path / "wave.pb")
    made = ship(tmp_path / "wave.pb", tmp_path / "wave")
    assert "Do not ship" in made.verdict
    assert "'wave' open, [?], and the file has [1]" in made.verdict
    assert "Do not ship" not in ship(tmp_path / "wave.pb", tmp_path / "told", shapes={"": (400,)}).verdict
    numbers = parse("""
        number = Placeholder(dtype=float, shape=[?])
        y = Mul(number, two, T=float)
        two = Const(float 2)
    """)
    save(numbers, tmp_path / "numbers.pb")
    assert "Do not ship" not in ship(tmp_path / "numbers.pb", tmp_path / "numbers").verdict


def test_tensors_that_the_app_feeds_are_where_the_model_begins(tmp_path: pathlib.Path) -> None:
    graph = Graph([*constants(w=RNG.normal(size=(4, 2)).astype(np.float32)), *parse(SERIES)])
    save(graph, tmp_path / "model.pb")
    made = ship(tmp_path / "model.pb", tmp_path / "out", inputs=["mean"])
    assert "Do not ship" not in made.verdict
    with Session(str(tmp_path / "out" / "frozen.pb")) as session:
        assert list(session.inputs) == ["mean"]


def test_the_hint_at_a_spectrum_names_what_can_be_fed(tmp_path: pathlib.Path) -> None:
    """Behind a layer, which is not to be left to the app unasked."""
    made_by = constants(w=RNG.normal(size=(9, 2)).astype(np.float32), v=RNG.normal(size=(16, 16)).astype(np.float32))
    graph = Graph([*made_by, *parse("""
        wave = Placeholder(dtype=float, shape=[1,16])
        mixed = MatMul(wave, v, T=float)
        length = Const(int32 [16])
        spectrum = RFFT(mixed, length, Treal=float, Tcomplex=complex64)
        loudness = ComplexAbs(spectrum, T=complex64, Tout=float)
        y = MatMul(loudness, w, T=float)
    """)])  # fmt: skip
    save(graph, tmp_path / "model.pb")
    with pytest.raises(PocketgraphError) as refused:
        ship(tmp_path / "model.pb", tmp_path / "out")
    named = re.search(r"inputs=(\w+)", str(refused.value))
    assert named is not None
    made = ship(tmp_path / "model.pb", tmp_path / "out", inputs=[named[1]])
    assert (tmp_path / "out" / "model.tflite").exists()
    assert "Do not ship" not in made.verdict


def test_the_hint_at_words_behind_classes_names_what_gives_their_numbers(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,3])
        axis = Const(int32 1)
        best = ArgMax(x, axis, T=float, Tidx=int32, output_type=int64)
        table = HashTableV2(key_dtype=int64, value_dtype=string, shared_name="words")
        unknown = Const(string "?")
        word = LookupTableFindV2(table, best, unknown, Tin=int64, Tout=string)
    """)
    with pytest.raises(PocketgraphError) as error:
        pocketgraph.export(graph, tmp_path / "m.tflite")
    assert str(error.value).endswith("; the words behind the numbers are the app's: outputs=best gives the numbers")
    assert pocketgraph.export(graph, tmp_path / "m.tflite", outputs=["best"])


def test_outputs_whose_names_a_file_writes_alike_are_told_apart(tmp_path: pathlib.Path) -> None:
    """As of two signatures of TensorFlow 2: ``f:1`` of the first and ``f_1`` of the second."""
    w = RNG.normal(size=(8, 3)).astype(np.float32)
    graph = Graph([*constants(w=w), *parse("""
        x = Placeholder(dtype=float, shape=[1,8])
        other_x = Placeholder(dtype=float, shape=[1,8])
        scores = MatMul(x, w, T=float)
        shares = Softmax(scores, T=float)
        f = IdentityN(scores, shares, T=[float, float])
        vector = MatMul(other_x, w, T=float)
        f_1 = Identity(vector, T=float)
    """)], outputs=["f", "f:1", "f_1"])  # fmt: skip
    pocketgraph.export(graph, tmp_path / "model.tflite")
    assert pocketgraph.verify(graph, tmp_path / "model.tflite").passed
    found = pocketgraph.benchmark(tmp_path / "model.tflite", max_runs=2)
    assert found.plain.count == 2


def test_texts_beside_numbers_do_not_keep_these_from_shipping(tmp_path: pathlib.Path) -> None:
    """A SavedModel's results come out of one node, the class's name among them."""
    weights = RNG.normal(size=(4, 3)).astype(np.float32)
    graph = Graph([
        *constants(weights=weights, names=np.array(["cat", "dog", "cow"], object)),
        *parse("""
            x = Placeholder(dtype=float, shape=[1, 4])
            scores = MatMul(x, weights, T=float)
            axis = Const(int32 1)
            best = ArgMax(scores, axis, T=float, Tidx=int32, output_type=int64)
            first = Const(int32 0)
            name = GatherV2(names, best, first, Tparams=string, Tindices=int64, Taxis=int32)
            call = IdentityN(name, scores, T=[string, float])
        """),
    ]).replace(outputs=["call:0", "call:1"])  # fmt: skip
    save(graph, tmp_path / "model.pb")
    shipment = ship(tmp_path / "model.pb", tmp_path / "out", outputs=None)
    assert any("gives texts, which do not ship" in line for line in shipment.unknown)
    assert (tmp_path / "out" / "model.tflite").exists()


FED_LOOP = """
    seed = Placeholder(dtype=float, shape=[1, 3])
    steps = Placeholder(dtype=int32, shape=[])
    zero = Const(int32 0)
    one = Const(int32 1)
    at_start = Enter(zero, T=int32, frame_name="loop")
    h_start = Enter(seed, T=float, frame_name="loop")
    limit = Enter(steps, T=int32, frame_name="loop", is_constant=true)
    step = Enter(one, T=int32, frame_name="loop", is_constant=true)
    kept = Enter(weights, T=float, frame_name="loop", is_constant=true)
    at = Merge(at_start, at_next, N=2, T=int32)
    h = Merge(h_start, h_next, N=2, T=float)
    goes_on = Less(at, limit, T=int32)
    condition = LoopCond(goes_on)
    at_switch = Switch(at, condition, T=int32)
    h_switch = Switch(h, condition, T=float)
    at_later = Add(at_switch:1, step, T=int32)
    product = MatMul(h_switch:1, kept, T=float)
    bent = Tanh(product, T=float)
    at_next = NextIteration(at_later, T=int32)
    h_next = NextIteration(bent, T=float)
    y = Exit(h_switch, T=float)
"""


def test_a_loop_of_a_length_that_is_fed_ships_and_may_be_set_for_good(tmp_path: pathlib.Path) -> None:
    graph = Graph([*constants(weights=RNG.normal(size=(3, 3)).astype(np.float32)), *parse(FED_LOOP)])
    save(graph, tmp_path / "model.pb")
    ship(tmp_path / "model.pb", tmp_path / "fed", outputs=["y"])
    fixed = pocketgraph.freeze(tmp_path / "model.pb", "y", bind={"steps": 10})
    save(fixed, tmp_path / "fixed.pb")
    ship(tmp_path / "fixed.pb", tmp_path / "out", outputs=["y"])
    x = RNG.normal(size=(1, 3)).astype(np.float32)
    wanted = Session(graph).run(["y"], {"seed": x, "steps": np.int32(10)})[0]
    np.testing.assert_allclose(Session(fixed).run(["y"], {"seed": x})[0], wanted, rtol=1e-5, atol=1e-6)
    with Session(tmp_path / "fed" / "model.tflite") as session:
        found = session.run_signature({"seed": x, "steps": np.int32(10)})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_file_with_open_sizes_is_timed_as_is_proposed(tmp_path: pathlib.Path) -> None:
    text = "x = Placeholder(dtype=float, shape=[?,?,4])\nz = Placeholder(dtype=float, shape=[?,3])\n"
    graph = parse(text + "y = Relu(x, T=float)\nw = Neg(z, T=float)").replace(outputs=["y", "w"])
    pocketgraph.export(graph, tmp_path / "open.tflite")
    program, *words = benchmark_command(str(tmp_path / "open.tflite")).split()
    assert program == "pocketgraph"
    assert words[2:] == ["--input_layer=x,z", "--input_layer_shape=1,1,4:1,3"]
    assert call(*words, "--max_num_runs=1") == 0
    pocketgraph.export(graph, tmp_path / "fixed.tflite", shapes={"x": [1, 5, 4]})
    fixed = benchmark_command(str(tmp_path / "fixed.tflite"))
    assert fixed == f"pocketgraph benchmark_model --graph={tmp_path / 'fixed.tflite'}"


@pytest.mark.usefixtures("eight_bits_are_faster")
def test_outputs_that_need_fewer_inputs_are_judged_each(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,64])
        z = Placeholder(dtype=float, shape=[1,64])
        w = Const(float {rng.normal(size=(64, 64)).tolist()})
        y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        sum = AddV2(x, z, T=float)
        v = MatMul(sum, w, T=float, transpose_a=false, transpose_b=false)
    """).replace(outputs=["y", "v"])
    save(graph, tmp_path / "net.pb")
    arrays = {name: rng.normal(size=(40, 64)).astype(np.float32) for name in ("x", "z")}
    np.savez(tmp_path / "data.npz", **arrays)
    found = ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "data.npz", outputs=["v", "y"])
    assert "name the outputs" not in str(found.tried)
    assert "it takes" not in str(found.tried)
    assert found.form in ("static", "dynamic", "weights")


STYLE = """
    x = Placeholder(dtype=float, shape=[1, 4, 4, 2])
    ones = Const(float [1.0, 1.0])
    zeros = Const(float [0.0, 0.0])
    none = Const(float [])
    norm = FusedBatchNormV3(x, ones, zeros, none, none, T=float, U=float, is_training=true, epsilon=0.001)
    y = Relu(norm, T=float)
"""


def test_a_frozen_batch_norm_of_the_batch_ships_where_that_is_meant(tmp_path: pathlib.Path) -> None:
    """As in style transfer; the numbers are the formula's."""
    save(Graph(parse(STYLE), outputs=["y"]), tmp_path / "style.pb")
    with pytest.raises(PocketgraphError) as error:
        ship(tmp_path / "style.pb", tmp_path / "out")
    assert "freeze_graph and ship take allow_training_batch_norm" in str(error.value)
    assert "freeze its training again" in str(error.value)  # the file has no averages that a repair could take
    assert call("ship", tmp_path / "style.pb", "--allow_training_batch_norm", "-o", tmp_path / "out") == 0
    x = RNG.normal(3, 2, (1, 4, 4, 2)).astype(np.float32)
    wanted = np.maximum((x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 0.001), 0)
    with Session(tmp_path / "out" / "model.tflite") as session:
        (found,) = session.run(session.graph.outputs, {"x": x})
    np.testing.assert_allclose(found, wanted, atol=0.01)


NAMED_NUMBERS = """
    x = Placeholder(dtype=float, shape=[1, 3])
    rounded = Round(x, T=float)
    place = Cast(rounded, SrcT=float, DstT=int64)
    table = HashTableV2(key_dtype=int64, value_dtype=string, shared_name="words")
    unknown = Const(string "?")
    words = LookupTableFindV2(table, place, unknown, Tin=int64, Tout=string)
    doubled = Add(x, x, T=float)
"""


@pytest.mark.parametrize("outputs", [None, ["doubled", "words"]])
def test_texts_of_a_table_that_nothing_fills_do_not_keep_numbers_from_shipping(
    tmp_path: pathlib.Path, outputs: list[str] | None
) -> None:
    graph = Graph([node for node in parse(NAMED_NUMBERS) if outputs or node.name != "doubled"])
    save(graph, tmp_path / "net.pb")
    told: list[str] = []
    made = ship(tmp_path / "net.pb", tmp_path / "out", outputs=outputs, notify=told.append)
    assert any("words" in line and "texts, which do not ship" in line for line in (*told, *made.unknown))
    with Session(tmp_path / "out" / "model.tflite") as session:
        (found,) = session.run(session.graph.outputs, {"x": np.float32([[0.6, 1.8, 2.4]])})
    np.testing.assert_allclose(found, [[1, 2, 2]] if outputs is None else [[1.2, 3.6, 4.8]], rtol=1e-3)


@pytest.mark.parametrize("what", ["export", "ship", "quantize"])
def test_texts_looked_up_in_a_table_that_nothing_fills_are_refused_with_what_to_give(
    tmp_path: pathlib.Path, what: str
) -> None:
    graph = Graph([*constants(rows=RNG.normal(size=(4, 3)).astype(np.float32)), *parse("""
        text = Placeholder(dtype=string, shape=[?])
        aside = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="aside")
        unknown = Const(int64 0)
        counted = LookupTableFindV2(aside, text, unknown, Tin=string, Tout=int64)
        table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
        place = LookupTableFindV2(table, text, unknown, Tin=string, Tout=int64)
        first = Const(int32 0)
        row = GatherV2(rows, place, first, Tparams=float, Tindices=int64, Taxis=int32)
        y = Softmax(row, T=float)
    """)], outputs=["y"])  # fmt: skip
    save(graph, tmp_path / "net.pb")
    with pytest.raises(UsageError, match="'table', and nothing in the file fills that table; give the SavedModel"):
        if what == "export":
            pocketgraph.export(tmp_path / "net.pb", tmp_path / "m.tflite")
        elif what == "ship":
            ship(tmp_path / "net.pb", tmp_path / "out")
        else:
            pocketgraph.quantize(tmp_path / "net.pb", mode="dynamic")


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_what_the_error_at_ragged_rows_names_can_be_fed(tmp_path: pathlib.Path, suffix: str) -> None:
    graph = Graph([*constants(w=RNG.normal(size=(4, 2)).astype(np.float32)), *parse("""
        values = Placeholder(dtype=float, shape=[?, 4])
        splits = Placeholder(dtype=int64, shape=[?])
        sizes = Const(int64 -1)
        zero = Const(float 0.0)
        rows = RaggedTensorToTensor(sizes, values, zero, splits, T=float, Tindex=int64, Tshape=int64,
            num_row_partition_tensors=1, row_partition_types=["ROW_SPLITS"])
        rows_of_training = RaggedTensorToTensor(sizes, values, zero, splits, T=float, Tindex=int64, Tshape=int64,
            num_row_partition_tensors=1, row_partition_types=["ROW_SPLITS"])
        axis = Const(int32 1)
        mean = Mean(rows, axis, T=float, Tidx=int32)
        y = MatMul(mean, w, T=float)
    """)], outputs=["y"])  # fmt: skip
    with pytest.raises(PocketgraphError, match=r"cut behind the ragged part with inputs=rows$"):
        pocketgraph.export(graph, tmp_path / f"m.{suffix}")
    made = pocketgraph.export(graph, tmp_path / f"m.{suffix}", inputs=["rows"])
    assert made.checks[0].passed


def test_a_tensor_that_a_signature_names_twice_ships_once() -> None:
    """As the modules of TensorFlow Hub do: what classifies is ``default`` too."""
    graph = parse("x = Placeholder(dtype=float, shape=[1,2])\n y = Relu(x, T=float)\n z = Neg(x, T=float)")
    named = Signature({"x": "x:0"}, {"default": "y:0", "scores": "y:0", "z": "z:0"})
    assert whole_model(graph.replace(signatures={"classify": named}, outputs=["y:0", "y:0", "z:0"]), print) == [
        "y:0",
        "z:0",
    ]
