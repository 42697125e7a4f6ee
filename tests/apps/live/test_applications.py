"""Which application a model is for, and what each answers; styles and averages as in the original applications."""

import pathlib

import numpy as np
import pytest
from PIL import ImageFont

import pocketgraph
from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.live.answers import Answer, Frame, Sound
from pocketgraph.apps.live.application_choice import application, chosen, is_normalised, misfit
from pocketgraph.apps.live.classification import DecayingAverage
from pocketgraph.apps.live.drawing import FONTS, annotated
from pocketgraph.apps.live.file_output import json_line
from pocketgraph.apps.live.pictures import PictureApp, SegmentationApp, as_pixels, slid
from pocketgraph.apps.live.speech import SoundModel, SpeechApp
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.datasets.image_loading import read
from pocketgraph.datasets.recordings import resampled
from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph.text_format import parse
from support import golden, model_dir, model_info, needs_shared

KINDS = {
    "mobilenet_v1_025_128": "classify",
    "poets_retrained_128": "classify",
    "mtcnn_blaueck": "detect",
    "aiy_visionkit_detect": "detect",
    "pose_mobilenet_v2_small": "pose",
    "enet_segmentation": "image",
    "espcn_x3": "image",
    "stylize_quantized": "stylize",
    "kws_ds_cnn_s": "speech",
    "speech_conv_actions_pardeep": "speech",
    "pocdoc": "benchmark",
}


@needs_shared
@pytest.mark.parametrize("name", KINDS)
def test_what_a_model_is_for(name: str) -> None:
    graph = pocketgraph.load(model_dir(name) / model_info(name)["file"])
    assert chosen(graph)[0] == KINDS[name]


@needs_shared
@pytest.mark.parametrize("name", ["mobilenet_v1_025_128", "mobilenet_v1_025_128_quant", "poets_retrained_128"])
def test_a_photo_gives_the_scores_of_label_image(name: str) -> None:
    graph = pocketgraph.load(model_dir(name) / model_info(name)["file"])
    photo = model_dir("data_tflite_support_images") / "burger.jpg"
    wanted = [(entry.label, entry.score) for entry in Labeler(graph).label(photo, top=5)]
    found = application(graph)(Frame(read(photo), 0.0, alone=True)).classes
    assert list(found) == wanted[: len(found)]


@needs_shared
def test_a_model_that_tells_the_best_class_alone_is_asked_for_its_scores() -> None:
    graph = pocketgraph.load(model_dir("mnist_panjinquan") / model_info("mnist_panjinquan")["file"])
    assert chosen(graph) == ("classify", "layer/final_result")


@needs_shared
@pytest.mark.parametrize("is_sized", [True, False])
def test_faces_are_where_the_golden_run_has_them(is_sized: bool) -> None:
    """Also without a size: frames are not squeezed into a square first."""
    folder = model_dir("mtcnn_blaueck")
    feeds, wanted = golden(folder)
    picture = feeds["input:0"][..., ::-1].astype(np.uint8)
    app = application(
        pocketgraph.load(folder / "mtcnn.pb"),
        feeds={k[:-2]: feeds[k] for k in feeds if k != "input:0"},
        **({"width": picture.shape[1], "height": picture.shape[0]} if is_sized else {}),
    )
    (found,) = app(Frame(picture, 0.0, alone=True)).detections
    scale = np.array([picture.shape[0], picture.shape[1]] * 2)
    np.testing.assert_allclose(np.array(found.box) * scale, wanted["box:0"][0], atol=0.5)
    assert found.score == pytest.approx(float(wanted["prob:0"][0]), abs=1e-3)


@needs_shared
def test_the_style_is_that_of_the_golden_run() -> None:
    folder = model_dir("stylize_quantized")
    feeds, wanted = golden(folder)
    app = application(pocketgraph.load(folder / "stylize_quantized.pb"), width=128, height=128)
    weights = feeds["style_num:0"]
    app.weights = weights.astype(np.float64)  # type: ignore[attr-defined]
    given = np.rint(feeds["input:0"][0] * 255).astype(np.uint8)
    picture = app(Frame(given, 0.0)).picture
    assert picture is not None
    golden_picture = 255 * wanted["transformer/expand/conv3/conv/Sigmoid:0"][0]
    assert np.abs(picture - golden_picture).mean() < 4  # in TensorFlow itself it moves by 2.4 with grappler


@needs_shared
def test_words_have_the_golden_scores() -> None:
    folder = model_dir("kws_ds_cnn_s")
    feeds, wanted = golden(folder)
    from pocketgraph.kernels.audio.wav import read_wav

    samples, rate = read_wav(feeds["wav_data:0"].tobytes())
    app = application(pocketgraph.load(folder / "DS_CNN_S.pb"))
    model = app.model  # type: ignore[attr-defined]
    ring = np.zeros(model.count, np.float32)
    ring[: len(samples)] = samples[: model.count, 0]
    scores, shown = model(ring)
    np.testing.assert_allclose(scores, wanted["labels_softmax:0"].reshape(-1), atol=1e-5)
    assert rate == model.rate
    assert shown is not None
    answer = app(Sound(ring, rate, 0.0))
    assert answer.classes[0][0] == f"class {int(wanted['labels_softmax:0'].argmax())}"


def test_a_style_of_values_around_0_is_shown_in_the_scale_that_goes_in() -> None:
    """As a page of ``app web`` shows it; what was below the middle was black."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        style_num = Placeholder(dtype=float, shape=[2])
        axis = Const(int32 [0])
        all = Sum(style_num, axis, T=float, Tidx=int32, keep_dims=false)
        y = Mul(x, all, T=float)
    """)
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    answer = application(graph, "stylize", mean=127.5, std=127.5)(Frame(pixels, 0))
    assert answer.picture is not None
    assert np.abs(answer.picture.astype(int) - pixels).max() <= 1


def test_sliders_keep_their_sum() -> None:
    weights = np.array([1.0, 0, 0])
    weights, last = slid(weights, 1, 0.4, 1)
    np.testing.assert_allclose(weights, [0.6, 0.4, 0])
    weights, last = slid(weights, 1, 1.0, last)
    np.testing.assert_allclose(weights, [0, 1, 0])
    assert last == 0
    weights, last = slid(weights, 1, 0.3, last)
    np.testing.assert_allclose(weights, [0.7, 0.3, 0])  # what was largest before takes the rest
    weights, _ = slid(np.array([0.98, 0.02, 0]), 2, 0.6, 0)
    np.testing.assert_allclose(weights, [0.392, 0, 0.6])  # what falls to 0.01 becomes 0
    weights, _ = slid(np.array([1.0, 0, 0]), 0, 0.5, 0)
    np.testing.assert_allclose(weights, [0.5, 0.5, 0])  # the remembered one is the moved one: the next


def test_the_average_decays_as_in_the_camera_example() -> None:
    average = DecayingAverage()
    np.testing.assert_allclose(average(np.array([0.8, 0.1])), [0.8, 0.1])
    np.testing.assert_allclose(average(np.array([0.04, 0.9])), [0.6, 0.3])
    for _ in range(20):
        found = average(np.array([0.0, 0.9]))
    np.testing.assert_allclose(found, [0, 0.9], atol=0.02)


def test_a_thousand_small_shares_are_averaged_whole() -> None:
    """Cut off at 0.05, all of them became 0, and the page said that the first class has 0.0 %."""
    average = DecayingAverage()
    scores = np.full(1001, 0.0009)
    scores[7] = 0.02
    for _ in range(30):
        found = average(scores)
    np.testing.assert_allclose(found, scores)


def test_logits_are_averaged_whole() -> None:
    """Cut off as shares are, those below 0 became 0, and the first class was the best of any picture."""
    average = DecayingAverage()
    for _ in range(3):
        found = average(np.array([-3.0, 0.02, -5.0]))
    np.testing.assert_allclose(found, [-3, 0.02, -5])
    assert not average.shares


LOGITS = """
    x = Placeholder(dtype=float, shape=[1,8,8,3])
    axes = Const(int32 [1, 2])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    less = Const(float [0.7, 0.6, 0.8])
    logits = Sub(mean, less, T=float)
"""


def test_logits_are_no_shares_and_all_of_them_are_shown() -> None:
    app = application(parse(LOGITS), labels=["red", "green", "blue"], kind="classify")
    black = np.zeros((8, 8, 3), np.uint8)
    for time in range(3):
        answer = app(Frame(black, time))
    assert [label for label, _ in answer.classes] == ["green", "red", "blue"]
    assert answer.as_json()["shares"] is False


def test_one_share_is_of_the_second_of_two_labels() -> None:
    """A share of 0.04 alone counted as nothing from the second frame on, which made the other class's 1."""
    graph = parse(
        LOGITS + "w = Const(float [[8], [0], [0]])\nscore = MatMul(logits, w, T=float)\ny = Sigmoid(score, T=float)"
    )
    assert chosen(graph)[0] == "benchmark"
    assert chosen(graph, labels=["cat", "dog"]) == ("classify", "y")
    app = application(graph, labels=["cat", "dog"])
    assert misfit(graph, app) == ""
    share = 1 / (1 + np.exp(-8 * (80 / 255 - 0.7)))
    assert 0.04 < share < 0.05
    for time in range(20):
        answer = app(Frame(np.full((8, 8, 3), 80, np.uint8), time))
    assert [label for label, _ in answer.classes] == ["cat"]
    assert answer.classes[0][1] == pytest.approx(1 - share, abs=1e-5)


@pytest.mark.parametrize(
    ("values", "mean", "std", "pixels"),
    [
        ([0.0, 0.5, 1.0], 0, 255, [0, 127, 255]),
        ([0.0, 128.0, 300.0], 0, 255, [0, 128, 255]),
        ([-1.0, 0.0, 1.0], 127.5, 127.5, [0, 127, 255]),
        ([0.0, 0.5, 1.0], 127.5, 127.5, [0, 127, 255]),
    ],
)
def test_outputs_become_pixels(values: list[float], mean: float, std: float, pixels: list[int]) -> None:
    found = as_pixels(np.array(values, np.float32).reshape(1, 1, 3, 1), mean, std)
    assert found[0, :, 0].tolist() == pixels
    assert found.shape == (1, 3, 3)
    with pytest.raises(RunError, match="no picture"):
        as_pixels(np.zeros((4, 4, 2), np.float32), 0, 255)


def test_examples_tell_things_apart(tmp_path: pathlib.Path) -> None:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[1,2,2,3])
        axes = Const(int32 [1, 2])
        embedding = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
        """
    )
    app = application(graph)
    assert app.kind == "embed"
    red, blue = (np.full((4, 4, 3), colour, np.uint8) for colour in ((250, 10, 0), (0, 10, 250)))
    for name, pixels in (("red", red), ("blue", blue)):
        app(Frame(pixels, 0.0))
        app.remember(name)  # type: ignore[attr-defined]
    assert app(Frame(red, 0.0)).classes[0] == ("red", pytest.approx(1.0))
    assert app.another()(Frame(red, 0.0)).classes == ()  # another viewer's examples are its own


def test_what_is_wrong_is_said() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,2,2,3])\ny = Relu(x, T=float)")
    with pytest.raises(UsageError, match="no application 'clasify'"):
        application(graph, "clasify")
    with pytest.raises(UsageError, match="no detector's"):
        application(graph, "detect")
    with pytest.raises(UsageError, match="no decoder 'yolo9'"):
        application(graph, "detect", decoder="yolo9")
    with pytest.raises(UsageError, match="has not the outputs of mtcnn"):
        application(graph, "detect", decoder="mtcnn")
    with pytest.raises(UsageError, match="takes no sound"):
        application(graph, "speech")


@needs_shared
def test_a_photo_gives_its_pixels_class() -> None:
    folder = model_dir("mobilenet_v1_025_128")
    app = application(pocketgraph.load(folder / "frozen_graph.pb"))
    photo = read(model_dir("data_tflite_support_images") / "sparrow.jpg")
    answer = app(Frame(photo, 0.0, alone=True))
    assert answer.classes[0][1] == pytest.approx(float(app.labeler.scores(photo).max()))  # type: ignore[attr-defined]


def test_a_colour_frame_is_timed_on_a_model_that_takes_gray() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,4,4,1])\ny = Relu(x, T=float)")
    lines = PictureModel(graph, ["y"]).times(np.zeros((8, 8, 3), np.uint8))
    assert any("Relu" in line for line in lines)


def test_a_litert_file_of_vectors_of_one_length_is_an_embedding() -> None:
    """As converters write l2_normalize; operators of files have small letters."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        unit = tfl.l2_normalization(x, _output_shapes=[[1,4]])
    """)
    assert is_normalised(graph, "unit")
    assert not is_normalised(graph, "x")


@pytest.mark.parametrize(("divided", "kind"), [("d", True), ("w", False)])
def test_a_length_is_divided_out_behind_any_names(divided: str, kind: bool) -> None:
    """As Keras writes a unit normalization, whose result several Identity hand on; the root of a constant is a batch
    normalization's."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,8])
        w = Const(float [[1], [2], [1], [1], [1], [1], [2], [3]])
        d = MatMul(x, w, T=float)
        c = Const(float [1])
        b = Add(d, c, T=float)
        squares = Square({divided}, T=float)
        axes = Const(int32 [1])
        sums = Sum(squares, axes, T=float, Tidx=int32, keep_dims=true)
        root = Rsqrt(sums, T=float)
        most = Minimum(root, c, T=float)
        unit = Mul(b, most, T=float)
        one = Identity(unit, T=float)
        two = Identity(one, T=float)
        three = Identity(two, T=float)
    """)
    assert is_normalised(graph, "three") is kind


def test_three_shares_at_each_place_are_classes_and_no_picture() -> None:
    graph = parse("""
        image = Placeholder(dtype=float, shape=[1,16,16,3])
        w = Const(float[1,1,3,3] 0.5)
        conv = Conv2D(image, w, T=float, strides=[1,1,1,1], padding="SAME")
        shares = Softmax(conv, T=float)
        result = Identity(shares, T=float)
    """)
    assert isinstance(application(graph), SegmentationApp)
    assert isinstance(application(graph.replace([*graph][:3], outputs=["conv"])), PictureApp)


@pytest.mark.parametrize(
    "end",
    [
        "y = Identity(best, T=int64)",
        "y = ExpandDims(best, last, T=int64, Tdim=int32)",
        "y = Cast(best, SrcT=int64, DstT=float)",
        "plane = ExpandDims(best, last, T=int64, Tdim=int32)\n y = Cast(plane, SrcT=int64, DstT=uint8)",
    ],
)
def test_the_best_class_of_each_place_is_no_picture(end: str) -> None:
    """As DeepLab's SemanticPredictions, int64 [1, height, width]; of three classes by their channel."""
    graph = parse(f"""
        image = Placeholder(dtype=float, shape=[1,16,16,3])
        last = Const(int32 -1)
        best = ArgMax(image, last, T=float, Tidx=int32, output_type=int64)
        {end}
    """)
    made = application(graph, labels=["red", "green", "blue"])
    assert isinstance(made, SegmentationApp)
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:4, :, 0], pixels[4:, :, 2] = 255, 255
    found = made(Frame(pixels, 0.0, alone=True))
    assert found.classes == (("blue", 0.75), ("red", 0.25))
    assert found.picture is not None
    assert found.picture.shape == (16, 16, 3)


@pytest.mark.parametrize("sizes", ["[-1, 64, 4]", "[-1, 16, 16, 3]", "[-1, 768]"])
def test_whole_numbers_that_are_no_plane_are_no_classes(sizes: str) -> None:
    """Boxes, counts and the numbers of words that tell what a picture shows."""
    graph = parse(f"""
        image = Placeholder(dtype=float, shape=[?,16,16,3])
        whole = Cast(image, SrcT=float, DstT=int32)
        to = Const(int32 {sizes})
        y = Reshape(whole, to, T=int32, Tshape=int32)
    """)
    assert chosen(graph)[0] == "benchmark"


def test_a_map_that_is_one_number_for_the_size_that_fits_is_no_picture() -> None:
    """Its input has any size, and its average is that of the whole map of 64 x 64 pixels."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        w = Const(float[4,4,3,1] 0.5)
        conv = Conv2D(x, w, T=float, strides=[1,4,4,1], padding="VALID")
        mean = AvgPool(conv, T=float, ksize=[1,16,16,1], strides=[1,1,1,1], padding="VALID")
        y = Sigmoid(mean, T=float)
    """)
    assert chosen(graph)[0] == "benchmark"


@pytest.mark.parametrize("batch", ["?", "1"])
@pytest.mark.parametrize("end", ["Identity", "Softmax"])
@pytest.mark.parametrize(("sizes", "kind"), [("36, 3", "benchmark"), ("36, 12", "benchmark"), ("24, 18", "image")])
def test_rows_of_numbers_are_no_picture(batch: str, sizes: str, kind: str, end: str) -> None:
    """Of a detector that was cut in front of its boxes, which gives three sizes as a map of places does; that has the
    proportions of the input."""
    graph = parse(f"""
        image = Placeholder(dtype=float, shape=[{batch},24,18,3])
        axes = Const(int32 [1, 2, 3])
        mean = Mean(image, axes, T=float, Tidx=int32, keep_dims=false)
        ones = Const(float[1,432] 1.0)
        column = Const(int32 [-1, 1])
        rows = Reshape(mean, column, T=float, Tshape=int32)
        many = MatMul(rows, ones, T=float)
        begin = Const(int32 [0, 0])
        count = Const(int32 [-1, {np.prod([int(size) for size in sizes.split(",")])}])
        some = Slice(many, begin, count, T=float, Index=int32)
        to = Const(int32 [-1, {sizes}])
        maps = Reshape(some, to, T=float, Tshape=int32)
        y = {end}(maps, T=float)
    """)
    assert chosen(graph)[0] == kind


def test_noise_that_a_generator_takes_is_no_picture() -> None:
    graph = parse("""
        noise = Placeholder(dtype=float, shape=[?,64])
        w = Const(float[64,256] 0.5)
        to = Const(int32[4] [-1, 16, 16, 1])
        layer = MatMul(noise, w, T=float)
        picture = Reshape(layer, to, T=float)
    """)
    assert chosen(graph)[0] == "benchmark"


def test_samples_whose_spectrum_a_graph_makes_itself_are_sound() -> None:
    graph = parse("""
        waveform = Placeholder(dtype=float, shape=[?,16000])
        frames = Const(int32[3] [-1, 40, 400])
        cut = Reshape(waveform, frames, T=float, Tshape=int32)
        length = Const(int32[1] [400])
        spectrum = RFFT(cut, length)
        energies = ComplexAbs(spectrum)
        axis = Const(int32 1)
        mean = Mean(energies, axis, T=float, Tidx=int32)
        w = Const(float[201,3] 0.5)
        logits = MatMul(mean, w, T=float)
        scores = Softmax(logits, T=float)
    """)
    assert chosen(graph)[0] == "speech"


LOUDNESS = """
    waveform = Placeholder(dtype=float, shape=[?])
    length = Const(int32 [16])
    spectrum = RFFT(waveform, length)
    shape = Shape(waveform, T=float, out_type=int32)
    count = Cast(shape, SrcT=int32, DstT=float)
    bins = ComplexAbs(spectrum, T=complex64, Tout=float)
    zero = Mul(bins, nothing, T=float)
    nothing = Const(float 0)
    some = Sum(zero, axis, T=float, keep_dims=true)
    axis = Const(int32 [0])
    scores = Add(count, some, T=float)
"""


def test_a_model_of_any_length_hears_as_much_as_is_said() -> None:
    """Its score is the number of samples; a ring that becomes longer begins with silence, and keeps what was heard."""
    app = SpeechApp(SoundModel(parse(LOUDNESS), rate=1000))
    sound = Sound(np.arange(1, 301, dtype=np.float32) / 1000, 1000, 0.0)
    assert app(sound).classes[0][1] == 1000
    app.change("heard_ms", 2500)
    assert (app._ring[-300:] == sound.samples).all()
    assert not app._ring[:-300].any()
    assert app(sound).classes[0][1] == 2500
    app.change("heard_ms", 200)
    assert (app._ring == sound.samples[-200:]).all()
    assert app(sound).classes[0][1] == 200
    twin = app.another()
    assert twin(sound).classes[0][1] == 200
    with pytest.raises(UsageError, match="from 100 to 30000"):
        app.change("heard_ms", 0)


def test_sound_of_another_rate_has_no_seams_between_blocks() -> None:
    app = SpeechApp(SoundModel(parse(LOUDNESS), rate=16000))
    sound = np.sin(np.arange(44100, dtype=np.float32) / 20)
    for start in range(0, len(sound), 4410):
        app.pass_by(Sound(sound[start : start + 4410], 44100, 0.0))
    heard = np.concatenate([app._ring, app._waiting])[-12000:]
    whole = resampled(sound[:, None], 44100, 16000)[:, 0].astype(np.float32)
    places = [at for at in range(len(whole) - len(heard) + 1) if whole[at] == heard[0]]
    assert any((whole[at : at + len(heard)] == heard).all() for at in places)


def test_a_rate_that_a_model_takes_is_fed() -> None:
    graph = parse("""
        samples = Placeholder(dtype=float, shape=[1600,1])
        rate = Placeholder(dtype=int32, shape=[])
        spectrum = AudioSpectrogram(samples, window_size=480, stride=320, magnitude_squared=true)
        mfcc = Mfcc(spectrum, rate, dct_coefficient_count=10)
        all = Const(int32 [1, 40])
        row = Reshape(mfcc, all, T=float, Tshape=int32)
        y = Softmax(row, T=float)
    """)
    app = application(graph)
    heard = np.random.default_rng(1).normal(0, 0.1, 1600).astype(np.float32)
    answer = app(Sound(heard, 16000, 0.0))
    best, _ = answer.classes[0]
    ring = np.append(np.zeros(160), heard[:1440])[:, None]  # three strides of 30 ms
    (wanted,) = pocketgraph.Session(graph, engine="reference").run(["y"], {"samples": ring, "rate": 16000})
    assert best == f"class {int(wanted.argmax())}"
    assert "spectrogram" in answer.values  # which a page draws
    assert json_line(Sound(heard, 16000, 0.0), answer)["values"] == {"time": 0.09}


def test_logits_of_words_are_judged_as_shares() -> None:
    """By a threshold of shares any of them were words, or none."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,1600])
        axis = Const(int32 [1])
        mean = Mean(x, axis, T=float, Tidx=int32, keep_dims=true)
        some = Const(float [[-4, -2, -3]])
        logits = Add(mean, some, T=float)
    """)
    app = application(graph, "speech", ["a", "b", "c"], sample_rate=1600)
    answer = app(Sound(np.zeros(1600, np.float32), 1600, 0.0))
    wanted = np.exp([-2, -3, -4]) / np.exp([-2, -3, -4]).sum()
    assert [label for label, _ in answer.classes] == ["b", "c", "a"]
    np.testing.assert_allclose([score for _, score in answer.classes], wanted, rtol=1e-5)
    assert answer.word is None  # as the threshold is 0.7
    app.change("threshold", 0.6)
    word = app(Sound(np.zeros(1600, np.float32), 1600, 1.0)).word
    assert word is not None
    assert (word[0], round(word[1], 3)) == ("b", round(wanted[0], 3))


@needs_shared
def test_a_model_of_one_length_has_no_other() -> None:
    app = SpeechApp(SoundModel(pocketgraph.load(model_dir("kws_ds_cnn_s") / model_info("kws_ds_cnn_s")["file"])))
    assert "heard_ms" not in [row.name for row in app.settings()]


def test_a_row_beside_other_rows_is_no_picture() -> None:
    """As a step of a network that writes captions takes features and states."""
    step = """
        features = Placeholder(dtype=float, shape=[?,64])
        state = Placeholder(dtype=float, shape=[?,8])
        w = Const(float[64,8] 0.5)
        told = MatMul(features, w, T=float)
        both = AddV2(told, {}, T=float)
        next = Softmax(both, T=float)
    """
    assert chosen(parse(step.format("state"))) == ("benchmark", None)
    lists = step.replace(
        "features = Placeholder(dtype=float, shape=[?,64])",
        """
        weights = Placeholder(dtype=float, shape=[?,64,1])
        last = Const(int32 [2])
        features = Sum(weights, last, T=float, Tidx=int32)""",
    )
    assert chosen(parse(lists.format("state"))) == ("benchmark", None)
    assert chosen(parse(step.format("told"))) == ("classify", "next")


def test_numbers_beside_others_are_no_scores() -> None:
    """As landmark models give points, whether there is a face, and more."""
    points = """
        picture = Placeholder(dtype=float, shape=[1,8,8,3])
        axes = Const(int32[2] [1, 2])
        means = Mean(picture, axes, T=float, Tidx=int32)
        to_points = Const(float[3,3] [[1.0, 0.0, 2.0], [0.0, 1.0, 0.5], [1.0, 1.0, 1.0]])
        points = MatMul(means, to_points, T=float)
    """
    assert chosen(parse(points)) == ("classify", "points")
    to_presence = (
        "to_presence = Const(float[3,1] [[1.0], [0.0], [1.0]])\npresence = MatMul(means, to_presence, T=float)"
    )
    assert chosen(parse(f"{points}\n{to_presence}")) == ("benchmark", None)
    assert chosen(parse(f"{points}\n{to_presence}"), "points") == ("classify", "points")


def test_labels_are_drawn_in_letters_of_other_languages() -> None:
    """Pillow's own font has those of ASCII alone, and draws a box for each other one."""
    if not any(has_font(name) for name in FONTS):
        pytest.skip(f"none of the fonts {', '.join(FONTS)} is installed (apt-get install fonts-dejavu-core)")

    def drawn(label: str) -> bytes:
        return annotated(np.zeros((48, 64, 3), np.uint8), Answer(classes=((label, 1.0),))).tobytes()

    assert len({drawn(letter) for letter in "aßäøł\uffff"}) == 6
    assert drawn("a\u0308") == drawn("ä")


def has_font(name: str) -> bool:
    try:
        ImageFont.truetype(name, 10)
    except OSError:
        return False
    return True


def test_a_model_without_inputs_has_no_application() -> None:
    with pytest.raises(UsageError, match="the model has no inputs, and nothing can be given to it"):
        application(parse("w = Const(float [1, 2])\ny = Relu(w, T=float)"))
