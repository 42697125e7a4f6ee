"""What changes pictures at random for training is taken out, and nothing else that draws; against TensorFlow."""

import pathlib
import warnings

import numpy as np
import pytest

import pocketgraph
from pocketgraph.cli.freeze_graph import first_of_a_kind
from pocketgraph.errors import option
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.leftovers import leftovers
from pocketgraph.freezing.ready_models import ready
from pocketgraph.freezing.repair import repaired
from pocketgraph.freezing.repair.augmentation import augmentations
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.random_answers import random_note

MODELS = pathlib.Path(__file__).parent.parent / "fixtures" / "saved_models"


def results(graph: Graph, x: np.ndarray) -> np.ndarray:
    with pocketgraph.Session(graph) as session:
        [signature] = graph.public_signatures.values()
        [y] = session.run(list(signature.outputs.values()), dict.fromkeys(signature.inputs.values(), x))
    return np.asarray(y)


def test_a_keras_export_answers_as_outside_of_training() -> None:
    given = np.load(MODELS / "augmentation.npz")
    frozen = freeze_with_report(MODELS / "augmentation", repair=True, signature="serving_default")
    assert not any("andom" in node.op for node in frozen.graph)
    np.testing.assert_allclose(results(frozen.graph, given["x"]), given["y"], rtol=0, atol=1e-6)
    taken = [line.split("'")[1].rpartition("/")[2] for line in frozen.repaired if "by what" in line]
    assert taken == ["random_flip_1", "random_rotation_1", "other_contrast_1", "random_hue_1", "random_crop_1"]


def test_whoever_freezes_without_repairs_is_told() -> None:
    frozen = freeze_with_report(MODELS / "augmentation", repair="batch_norms,updates", signature="serving_default")
    [told] = [line for line in frozen.warnings if "by random numbers" in line]
    assert "random_flip_1'" in told
    assert f"{option('repair')}=augmentation" in told


def test_commands_take_it_out_by_themselves() -> None:
    given = np.load(MODELS / "augmentation.npz")
    found = ready(MODELS / "augmentation")
    assert found.freezing is not None
    assert found.freezing.repair
    np.testing.assert_allclose(results(found.graph, given["x"]), given["y"], rtol=0, atol=1e-6)


def test_a_session_of_the_model_as_it_is_stored_warns() -> None:
    with pocketgraph.Session(MODELS / "augmentation") as session, pytest.warns(UserWarning, match="at random") as told:
        assert session.inputs
    assert "changes what it is fed at random, as in training" in str(told[0].message)
    assert f"`pocketgraph freeze_graph --repair -o frozen.pb {MODELS / 'augmentation'}` takes that out" in str(
        told[0].message
    )
    with pocketgraph.Session(MODELS / "conv_training") as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.inputs


def test_repairs_that_are_alike_are_counted() -> None:
    lines = [f"'{name}' takes the moving average '{name}/mean' in place of 'moments'" for name in "abcde"]
    assert list(first_of_a_kind([*lines, "'x' is false from now on"])) == [
        *lines[:2],
        f"{lines[2]} (and 2 more like it)",
        "'x' is false from now on",
    ]


CHANGED = """
    x = Placeholder(dtype=float, shape=[?,8,8,3])
    size = Shape(x, T=float, out_type=int32)
    NAME/noise = RandomStandardNormal(size, dtype=float, T=int32)
    NAME/sum = AddV2(x, NAME/noise, T=float)
    w = Const(float[3,3,3,8] 0.5)
    y = Conv2D(NAME/sum, w, T=float, strides=[1,1,1,1], padding="SAME")
"""


@pytest.mark.parametrize("name", ["gaussian_noise_1", "net/augment", "RandomBrightness", "data/color_jitter"])
def test_scopes_are_known_by_their_names(name: str) -> None:
    graph = parse(CHANGED.replace("NAME", name)).replace(outputs=["y"])
    changed, lines = repaired(graph, "augmentation")
    assert changed[f"{name}/sum"].op == "Identity"
    assert changed[f"{name}/sum"].inputs == ("x",)
    assert lines == {name: f"'{name}' changed its input by what '{name}/noise' drew; it hands on 'x'"}


def test_noise_is_named_as_where_it_is_met() -> None:
    """Its hint is that of a session, and each of the two repairs takes it out."""
    graph = parse(CHANGED.replace("NAME", "gaussian_noise")).replace(outputs=["y"])
    [told] = leftovers(graph, graph)
    assert told.endswith(f"{option('repair')}=dropout takes that out")
    assert "repair=dropout" in random_note(graph, ["y"])
    assert repaired(graph, "dropout")[0]["gaussian_noise/sum"].op == "Identity"
    other = graph.map_nodes(lambda node: node.replace(op="Mul") if node.name == "gaussian_noise/sum" else node)
    [told] = leftovers(other, other)
    assert told.endswith(f"{option('repair')}=augmentation takes that out")


def test_bytes_become_the_floats_that_came_out() -> None:
    text = CHANGED.replace("NAME", "gaussian_noise").replace("dtype=float, shape=[?,8", "dtype=uint8, shape=[?,8")
    text = text.replace("(x, T=float", "(x, T=uint8").replace("AddV2(x,", "AddV2(gaussian_noise/pixels,")
    graph = parse(
        text.replace(
            "gaussian_noise/sum =", "gaussian_noise/pixels = Cast(x, SrcT=uint8, DstT=float)\n    gaussian_noise/sum ="
        )
    )
    changed, _ = repaired(graph.replace(outputs=["y"]), "augmentation")
    assert changed["gaussian_noise/sum"].op == "Cast"
    assert changed["gaussian_noise/sum"].inputs == ("x",)


WEIGHTS = np.ones((3, 3, 3, 8), np.float32).tolist()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CHANGED.replace("NAME", "layer"), id="a scope of another name without a seed of its own"),
        pytest.param(CHANGED.replace("NAME", "gaussian_noise").replace("[?,8,8,3]", "[?,8]"), id="no picture"),
        pytest.param(
            CHANGED.replace("NAME", "gaussian_noise").replace("Conv2D(", "Relu("),
            id="a graph that augments alone",
        ),
        pytest.param(
            f"""
            x = Placeholder(dtype=float, shape=[?,8,8,3])
            w = Const(float {WEIGHTS})
            features = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
            size = Shape(features, T=float, out_type=int32)
            gaussian_noise/drawn = RandomStandardNormal(size, dtype=float, T=int32)
            gaussian_noise/sum = AddV2(features, gaussian_noise/drawn, T=float)
            w2 = Const(float[1,1,8,64] 0.5)
            y = Conv2D(gaussian_noise/sum, w2, T=float, strides=[1,1,1,1], padding="SAME")
            """,
            id="behind weights",
        ),
        pytest.param(
            f"""
            size = Const(int32 [1,8,8,3])
            gaussian_noise/drawn = RandomStandardNormal(size, dtype=float, T=int32)
            w = Const(float {WEIGHTS})
            y = Conv2D(gaussian_noise/drawn, w, T=float, strides=[1,1,1,1], padding="SAME")
            """,
            id="a generator without an input",
        ),
        pytest.param(
            CHANGED.replace("NAME", "gaussian_noise").replace(
                "y = ", "y = Relu(random_blur/y, T=float)\n    random_blur/y = "
            ),
            id="a graph that augments twice",
        ),
        pytest.param(
            """
            mean = Placeholder(dtype=float, shape=[?,8,8,3])
            scale = Placeholder(dtype=float, shape=[?,8,8,3])
            size = Shape(mean, T=float, out_type=int32)
            random_jitter/drawn = RandomStandardNormal(size, dtype=float, T=int32)
            random_jitter/scaled = Mul(random_jitter/drawn, scale, T=float)
            random_jitter/sum = AddV2(mean, random_jitter/scaled, T=float)
            w = Const(float[3,3,3,8] 0.5)
            y = Conv2D(random_jitter/sum, w, T=float, strides=[1,1,1,1], padding="SAME")
            """,
            id="a sample of a distribution",
        ),
        pytest.param(
            """
            x = Placeholder(dtype=float, shape=[1,8,8,3])
            size = Const(int32 [])
            random_crop/drawn = RandomUniformInt(size, low, high, Tout=int32, T=int32)
            low = Const(int32 0)
            high = Const(int32 4)
            zero = Const(int32 0)
            random_crop/begin = Pack(zero, random_crop/drawn, random_crop/drawn, zero, N=4, T=int32)
            sizes = Const(int32 [1,4,4,3])
            random_crop/part = Slice(x, random_crop/begin, sizes, T=float, Index=int32)
            w = Const(float[3,3,3,8] 0.5)
            y = Conv2D(random_crop/part, w, T=float, strides=[1,1,1,1], padding="SAME")
            """,
            id="a crop whose size the result has",
        ),
    ],
)
def test_other_draws_stay(text: str) -> None:
    graph = parse(text).replace(outputs=["y"])
    assert repaired(graph, "augmentation") == (graph, {})
    assert not list(augmentations(graph))


def test_a_graph_that_was_frozen_is_repaired_too(tmp_path: pathlib.Path) -> None:
    given = np.load(MODELS / "augmentation.npz")
    pocketgraph.save(freeze(MODELS / "augmentation", repair="batch_norms,updates"), tmp_path / "frozen.pb")
    graph = pocketgraph.load(tmp_path / "frozen.pb")
    [x] = [node.name for node in graph if node.op == "Placeholder"]
    again = freeze(graph, "StatefulPartitionedCall_1", repair=True)
    with pocketgraph.Session(again) as session:
        [y] = session.run(list(again.outputs), {f"{x}:0": given["x"]})
    np.testing.assert_allclose(y, given["y"], rtol=0, atol=1e-6)
