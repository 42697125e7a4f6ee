"""Core ML packages: what is in them, what stands beside them, and that they compute what TensorFlow did."""

from __future__ import annotations

import pathlib
import runpy
import types
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.errors import UsageError
from pocketgraph.exporting import About, export
from pocketgraph.exporting.programs import LackingError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from support import ROOT, model_dir, needs_shared, script

coremltools = pytest.importorskip("coremltools", reason="the extra 'coreml' is not installed")

CLASSIFIER = """
    pixels = Placeholder(dtype=float, shape=[?, 4, 4, 3])
    w = Const(float [[[[0.5, -1.0], [0.25, 2.0], [1.0, 0.5]]]])
    conv = Conv2D(pixels, w, T=float, strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")
    axes = Const(int32 [1, 2])
    pooled = Mean(conv, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(pooled, T=float)
"""


def spec(path: pathlib.Path) -> Any:
    return coremltools.utils.load_spec(str(path))


def operators(path: pathlib.Path) -> list[str]:
    (block,) = spec(path).mlProgram.functions["main"].block_specializations.values()
    return [operation.type for operation in block.operations if operation.type != "const"]


def test_what_kills_an_export_leaves_nothing_among_temporary_files(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """coremltools keeps its first package until Python ends, which a kill prevents."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    found = []
    monkeypatch.setattr(
        "pocketgraph.exporting.coreml.coreml_exporter._readable",
        lambda path: found.extend((tmp_path / "temporary").glob("*.mlpackage")),
    )
    export(parse(CLASSIFIER), tmp_path / "net.mlpackage", input_mean=127.5, input_std=63.75)
    assert not found
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "temporary") == [
        "net.mlpackage", "net.mlpackage.check.py", "net.mlpackage.golden.npz",
    ]  # fmt: skip


def test_a_classifier_takes_images_and_gives_labels(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "net.mlpackage"
    made = export(
        parse(CLASSIFIER), out, labels=["cat", "dog"], input_mean=127.5, input_std=63.75,
        about=About("Net", "Tells cats from dogs", "v2", "me", "Apache-2.0"),
    )  # fmt: skip
    found = spec(out)
    (entering,) = found.description.input
    assert (entering.name, entering.type.imageType.width, entering.type.imageType.height) == ("pixels", 4, 4)
    assert found.description.predictedFeatureName == "classLabel"
    assert found.specificationVersion == 6  # iOS 15
    about = found.description.metadata
    assert (about.shortDescription, about.versionString, about.author, about.license) == (
        "Tells cats from dogs", "v2", "me", "Apache-2.0",
    )  # fmt: skip
    assert {"conv", "softmax", "classify"} <= set(operators(out))
    assert "transpose" not in operators(out)  # images come in channels first
    assert made.checks[0].outputs[0].largest_relative < 1e-6
    assert "macOS" in made.unchecked
    assert [pathlib.Path(name).name for name in made.files[-2:]] == [
        "net.mlpackage.check.py",
        "net.mlpackage.golden.npz",
    ]
    assert any("batch" in note for note in made.notes)
    assert {oct(path.stat().st_mode & 0o777) for path in out.rglob("*") if path.is_file()} == {"0o644"}


class MacModel:
    """Stands for Core ML on a Mac: computes a package as it was read back."""

    off = 0.0

    def __init__(self, path: str) -> None:
        from pocketgraph.exporting.coreml.evaluation import Package

        self.package = Package(path)
        self.labels = ["cat", "dog"]

    def predict(self, given: dict[str, Any]) -> dict[str, Any]:
        (picture,) = given.values()
        pixels = np.asarray(picture, np.float32).transpose(2, 0, 1)[None]
        (scores,) = self.package.run({"pixels": pixels}).values()
        scores = scores.reshape(-1) + self.off
        return {"classLabel": "cat", "classLabel_probs": dict(zip(self.labels, map(float, scores), strict=True))}


@pytest.mark.parametrize(("off", "code"), [(0.0, 0), (0.1, 1), (float("nan"), 1)])
def test_the_script_for_a_mac(
    off: float, code: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "net.mlpackage"
    samples = np.random.default_rng(0).uniform(-1, 1, (2, 4, 4, 3)).astype(np.float32)
    export(parse(CLASSIFIER), out, labels=["cat", "dog"], input_mean=127.5, input_std=127.5, samples=samples)
    fake: Any = types.ModuleType("coremltools")
    fake.models = types.SimpleNamespace(MLModel=type("Off", (MacModel,), {"off": off}))
    with monkeypatch.context() as patched:
        main = runpy.run_path(str(tmp_path / "net.mlpackage.check.py"), run_name="a Mac")["main"]
        patched.setitem(main.__globals__, "coremltools", fake)
        assert main() == code
    said = capsys.readouterr().out
    assert said.count("set ") == 2
    assert ("passed" in said) == (code == 0)
    assert "@" not in (tmp_path / "net.mlpackage.check.py").read_text()


@pytest.mark.parametrize(
    ("low", "high", "operator"),
    [(-1.03, 2.11, "constexpr_affine_dequantize"), (0.51, 2.11, "constexpr_lut_to_dense")],
)
def test_stored_codes_stay_codes(low: float, high: float, operator: str, tmp_path: pathlib.Path) -> None:
    """As quantize_weights leaves them; where no code stands for zero, a table says what they stand for."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 2])
        codes = Const(quint8 [[0, 100, 255], [7, 200, 30]])
        low = Const(float {low})
        high = Const(float {high})
        w = Dequantize(codes, low, high, T=quint8, mode="MIN_FIRST")
        y = MatMul(x, w, T=float)
    """)
    made = export(graph, tmp_path / "net.mlpackage")
    assert operator in operators(tmp_path / "net.mlpackage")
    assert spec(tmp_path / "net.mlpackage").specificationVersion == 7  # iOS 16
    assert any("iOS 16" in note for note in made.notes)


def test_half_precision(tmp_path: pathlib.Path) -> None:
    export(parse(CLASSIFIER), tmp_path / "net.mlpackage", precision="float16")
    (block,) = spec(tmp_path / "net.mlpackage").mlProgram.functions["main"].block_specializations.values()
    (conv,) = (operation for operation in block.operations if operation.type == "conv")
    assert conv.outputs[0].type.tensorType.dataType == 10  # MIL's number of float16


def test_an_index_beyond_a_one_hot_vector_selects_no_row(tmp_path: pathlib.Path) -> None:
    """As TensorFlow 1.15 computes it; coremltools would gather rows instead, which has none for it."""
    from pocketgraph.exporting.coreml.evaluation import Package

    graph = parse("""
        segments = Placeholder(dtype=int32, shape=[4])
        depth = Const(int32 2)
        on = Const(float 1)
        off = Const(float 0)
        hot = OneHot(segments, depth, on, off, T=float, TI=int32, axis=-1)
        table = Const(float[2, 3] [[1, 2, 3], [4, 5, 6]])
        rows = MatMul(hot, table, T=float)
    """)
    export(graph, tmp_path / "net.mlpackage")
    (rows,) = Package(str(tmp_path / "net.mlpackage")).run({"segments": np.int32([1, 0, 2, 5])}).values()
    assert rows.tolist() == [[4, 5, 6], [1, 2, 3], [0, 0, 0], [0, 0, 0]]


def test_classes_of_one_name_are_told_apart(tmp_path: pathlib.Path) -> None:
    made = export(parse(CLASSIFIER), tmp_path / "net.mlpackage", labels=["crane", "crane"])
    classes = np.load(tmp_path / "net.mlpackage.golden.npz")["labels"]
    assert list(classes) == ["crane (0)", "crane (1)"]
    assert any("crane" in note for note in made.notes)


def test_what_core_ml_lacks_is_listed_at_once(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4])
        u = Unique(x, T=float, out_idx=int32)
        c = Cast(u:1, SrcT=int32, DstT=float)
        d = Add(c, x, T=float)
        n = Where(d, T=float)
        m = Cast(n, SrcT=int64, DstT=float)
    """)
    with pytest.raises(LackingError) as caught:
        export(graph, tmp_path / "net.mlpackage", outputs=["m", "d"])
    assert {"u", "n"} <= set(caught.value.reasons)
    assert str(caught.value).startswith("Core ML has nothing for")
    assert list(tmp_path.iterdir()) == []


def test_sizes_labels_and_types_that_do_not_fit(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "net.mlpackage"
    with pytest.raises(UsageError, match="needs fixed sizes"):
        export(parse("x = Placeholder(dtype=float, shape=[1, ?])\ny = Relu(x, T=float)"), out)
    with pytest.raises(UsageError, match="there are 3 labels"):
        export(parse(CLASSIFIER), out, labels=["a", "b", "c"])
    with pytest.raises(UsageError, match="type string"):
        export(parse("x = Placeholder(dtype=string, shape=[1])\ny = StringToNumber(x, out_type=float)"), out)
    with pytest.raises(UsageError, match=r"ends in .mlpackage, not 'net'.*-o net.mlpackage"):
        export(parse(CLASSIFIER), tmp_path / "net", target="coreml")
    assert list(tmp_path.iterdir()) == []


def test_names_that_core_ml_does_not_take(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        in/1x = Placeholder(dtype=float, shape=[])
        state = Placeholder(dtype=float, shape=[])
        out/class = Add(in/1x, state, T=float)
    """)
    made = export(graph, tmp_path / "net.mlpackage", samples={"in/1x": np.float32([4.0]), "state": np.float32([1.0])})
    found = spec(tmp_path / "net.mlpackage").description
    assert [item.name for item in found.input] == ["in_1x", "state_"]
    assert [item.name for item in found.output] == ["out_class"]
    assert sum("is called" in note for note in made.notes) == 3


def test_the_command(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(CLASSIFIER), tmp_path / "net.pb")
    out = tmp_path / "net.mlpackage"
    assert call("export", str(tmp_path / "net.pb"), "-o", str(out)) == 0
    printed = capsys.readouterr().out
    assert "ms a run here" not in printed
    assert "Core ML itself runs on macOS" in printed
    assert call("export", str(tmp_path / "net.pb"), "-o", str(out)) == 2
    assert "not empty" in capsys.readouterr().err
    assert call("export", str(tmp_path / "net.pb"), "-o", str(out), "--force") == 0
    assert call("check", str(tmp_path / "net.pb"), "--target=coreml") == 0


def tool(name: str) -> ModuleType:
    return script(ROOT / "tools" / f"{name}.py")


@needs_shared
@pytest.mark.parametrize(
    "name",
    ["mobilenet_v1_025_128", "mobilenet_v1_025_128_quant", "kws_basic_lstm_s", "kws_ds_cnn_s", "tf2onnx_ae0",
     "kws_crnn_s", "speech_conv_actions_pardeep", "unity_3dball", "pose_mobilenet_v2_small",
     "music_score_classifier", "customvision_recipe"],
)  # fmt: skip
def test_models_compute_what_tensorflow_did(name: str) -> None:
    (case,) = (case for case in tool("onnx_goldens").cases(False, 17) if case.name == name)
    _, kind, why = tool("coreml_goldens").verdict(case)
    assert (kind, why) == ("equal", "")
    assert model_dir(name).is_dir()


@needs_shared
@pytest.mark.slow
def test_nearly_all_graphs_with_goldens_are_equal_or_refused() -> None:
    cases = (case for case in tool("onnx_goldens").cases(False, 17) if case.name.startswith("op_graphs/"))
    found = list(map(tool("coreml_goldens").verdict, cases))
    kinds = [kind for _, kind, _ in found]
    assert len(found) > 500
    assert kinds.count("equal") >= 0.9 * len(found), [line for line in found if line[1] != "equal"]
