"""``pocketgraph verify``: table, JSON, exit codes, ways to give inputs."""

import io
import json
import pathlib
import subprocess
import sys
import wave

import numpy as np
import pytest
from click.testing import CliRunner, Result

import command_line
from pocketgraph.cli.main import group
from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from support import ROOT


@pytest.fixture
def models(tmp_path: pathlib.Path) -> tuple[str, str]:
    """Two files that differ by 0.5 in one logit."""
    paths = []
    for name, bias in (("a", "[0.0, 0.0]"), ("b", "[0.0, 0.5]")):
        graph = parse(f"""
            x = Placeholder(dtype=float, shape=[?,2])
            bias = Const(float {bias})
            logits = BiasAdd(x, bias, T=float)
        """)
        paths.append(str(tmp_path / f"{name}.pb"))
        save(graph, paths[-1])
    return paths[0], paths[1]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(group, ["verify", *arguments])


def test_equal_models_exit_with_0(models: tuple[str, str]) -> None:
    result = call(models[0], models[0])
    assert result.exit_code == 0, result.output
    assert "logits" in result.output
    assert "equal within 0.0001" in result.output


def test_different_models_exit_with_1(models: tuple[str, str]) -> None:
    result = call(*models)
    assert result.exit_code == 1
    assert "differs" in result.output
    assert "0.5" in result.output
    assert call(*models, "--tolerance=10").exit_code == 0


def test_json(models: tuple[str, str], tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "feeds.npz", in_x_0=np.array([[1.0, 0.75], [4.0, 0.0]], np.float32))
    result = call(*models, "--inputs", str(tmp_path / "feeds.npz"), "--outputs=logits:0", "--json", "--top1=0.9")
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert found["passed"] is False
    assert found["standard"] == "within 0.0001 of the largest magnitude"
    (output,) = found["outputs"]
    assert output.pop("snr_db") == pytest.approx(10 * np.log10((1 + 0.75**2 + 16) / 0.5))
    assert output.pop("kl") > 0
    assert output == {
        "name": "logits:0", "shape": [2, 2], "max_abs": 0.5, "mean_abs": 0.25, "max_relative": 0.125,
        "mean_relative": 0.0625, "worst_index": [0, 1], "top1": 0.5, "problem": "", "passed": False,
    }  # fmt: skip


def test_single_inputs_by_name(models: tuple[str, str], tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 2), np.float32))
    np.savez(tmp_path / "one.npz", anything=np.zeros((3, 2), np.float32))
    for file in ("x.npy", "one.npz"):
        result = call(*models, f"--inputs=x={tmp_path / file}", "--json", "--tolerance=9")
        assert json.loads(result.output)["outputs"][0]["shape"] == [3, 2]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (["x=missing.npy"], "no such file"),
        (["z=missing.npy"], "names no tensor"),
        (["missing.npz"], "no such file"),
        (["x=DIR/x.npy", "x:0=DIR/x.npy"], "gives 'x:0' twice"),
        (["x=DIR/text.npy"], "not a readable"),
    ],
)
def test_wrong_inputs(models: tuple[str, str], tmp_path: pathlib.Path, inputs: list[str], problem: str) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 2), np.float32))
    (tmp_path / "text.npy").write_text("no array")
    options = [f"--inputs={text.replace('DIR', str(tmp_path))}" for text in inputs]
    result = call(*models, *options)
    assert isinstance(result.exception, UsageError)
    assert problem in str(result.exception)


def test_from_the_shell_errors_are_one_line_and_exit_2(models: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from pocketgraph.cli.main import main; main()", "verify", *models, "--outputs=logit"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: the first model has no output 'logit'; did you mean 'logits'?\n"


def test_made_up_feeds_are_not_blamed_for_an_op_without_a_kernel(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\nodd = FrobnicateV9(x, T=float)\ny = Relu(odd, T=float)")
    save(graph, tmp_path / "odd.pb")
    result = call(str(tmp_path / "odd.pb"), str(tmp_path / "odd.pb"))
    assert "No OpKernel was registered to support Op 'FrobnicateV9'" in str(result.exception)
    assert "made up" not in str(result.exception)
    assert "pocketgraph help custom-kernels" in str(result.exception)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--seed=-1", "-1 is not in the range x>=0"),
        ("--input_shape=x:-1", "'x:-1' is not NAME:1,224,224,3"),
        ("--signature=serving_default", "no model here has signatures, as a SavedModel has; leave --signature out"),
        ("--preset=mobilnet", "there is no preset 'mobilnet'; did you mean"),
        ("--data=", "No such file or directory; the name given is empty"),
    ],
)
def test_flags_that_say_nothing_sensible(
    models: tuple[str, str], flag: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.call("verify", *models, flag) in (1, 2)
    assert message in capsys.readouterr().err


def test_runs_and_inputs_exclude_each_other(models: tuple[str, str]) -> None:
    result = call(*models, "--runs=2", "--inputs=x=x.npy")
    assert isinstance(result.exception, UsageError)


def test_plan_prints_parts_and_reasons(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float[2,2] 0.5)
        a = MatMul(x, w, T=float)
        odd = Lgamma(a, T=float)
        y = Softmax(odd, T=float)
    """)
    save(graph, tmp_path / "m.pb")
    path = str(tmp_path / "m.pb")
    result = CliRunner().invoke(group, ["plan", path])
    assert result.exit_code == 0, result.output
    assert "litert" in result.output
    assert "Lgamma" in result.output
    found = json.loads(CliRunner().invoke(group, ["plan", path, "--json", "--inputs=x=7,2"]).output)
    assert found["feeds"] == {"x:0": {"dtype": "float", "shape": [7, 2]}}
    assert [part["runs_on"] for part in found["parts"]] == ["litert", "litert", "reference"]
    assert list(found["reasons"]) == ["odd"]
    wrong = CliRunner().invoke(group, ["plan", path, "--inputs=x=seven"])
    assert isinstance(wrong.exception, UsageError)


@pytest.fixture
def pictures(tmp_path: pathlib.Path) -> pathlib.Path:
    """Three small pictures in a folder."""
    from PIL import Image

    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(3):
        values = np.random.default_rng(number).integers(0, 256, (5, 6, 3), np.uint8)
        Image.fromarray(values).save(folder / f"{number}.png")
    return folder


def picture_model(path: pathlib.Path, factor: float) -> str:
    graph = parse(f"""
        picture = Placeholder(dtype=float, shape=[1,4,4,3])
        factor = Const(float {factor})
        scaled = Mul(picture, factor, T=float)
        axes = Const(int32 [1, 2])
        mean = Mean(scaled, axes, T=float, Tidx=int32)
        y = Softmax(mean, T=float)
    """)
    save(graph, path)
    return str(path)


def test_a_folder_of_pictures(tmp_path: pathlib.Path, pictures: pathlib.Path) -> None:
    a, b = picture_model(tmp_path / "a.pb", 1.0), picture_model(tmp_path / "b.pb", 0.5)
    options = ("--data", str(pictures), "--input_mean=127.5", "--input_std=127.5", "--outputs=y")
    result = call(a, a, *options)
    assert result.exit_code == 0, result.output
    assert "3 sets of feeds" in result.output
    assert "2 sets of feeds" in call(a, a, *options, "--limit=2").output
    assert call(a, b, *options).exit_code == 1


def test_data_in_arrays_with_labels_and_the_tensor_that_takes_them(
    models: tuple[str, str], tmp_path: pathlib.Path
) -> None:
    np.savez(tmp_path / "data.npz", x=np.arange(8, dtype=np.float32).reshape(4, 2), labels=np.array([0, 1, 0, 1]))
    result = call(models[0], models[0], "--data", str(tmp_path / "data.npz"), "--inputs=x", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["runs"] == 4


def test_recordings_go_into_a_graph_that_reads_them(tmp_path: pathlib.Path) -> None:
    from pocketgraph.kernels.audio.wav import encode_wav

    graph = parse("""
        wav_data = Placeholder(dtype=string, shape=[])
        decoded = DecodeWav(wav_data, desired_channels=1, desired_samples=8)
        y = Neg(decoded, T=float)
    """)
    save(graph, tmp_path / "m.pb")
    (tmp_path / "heard").mkdir()
    for number in range(2):
        sound = np.random.default_rng(number).uniform(-1, 1, (8, 1)).astype(np.float32)
        (tmp_path / "heard" / f"{number}.wav").write_bytes(encode_wav(sound, np.array(16000)).item())
    model = str(tmp_path / "m.pb")
    result = call(model, model, "--data", str(tmp_path / "heard"), "--outputs=y", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert (found["runs"], found["outputs"][0]["shape"]) == (2, [8, 1])


def test_a_model_cut_to_pieces_exits_with_1(tmp_path: pathlib.Path) -> None:
    whole = picture_model(tmp_path / "a.pb", 1.0)
    save(parse("mean = Placeholder(dtype=float, shape=[1,3])\ny = Softmax(mean, T=float)"), tmp_path / "cut.pb")
    result = call(whole, str(tmp_path / "cut.pb"), "--json", "--tolerance=1000")
    assert result.exit_code == 1
    assert json.loads(result.output)["outputs"][0]["problem"] == (
        "does not depend on 'picture' in the second model, which reads 'mean' instead"
    )


def test_shapes_of_open_inputs(tmp_path: pathlib.Path) -> None:
    save(parse("x = Placeholder(dtype=float, shape=<unknown>)\ny = Softmax(x, T=float)"), tmp_path / "m.pb")
    model = str(tmp_path / "m.pb")
    assert isinstance(call(model, model).exception, UsageError)
    for text in ("5,2", "x:5,2"):
        found = json.loads(call(model, model, f"--input_shape={text}", "--json").output)
        assert found["outputs"][0]["shape"] == [5, 2]
    refused = call(model, model, "--input_shape=5,2", "--inputs=x=x.npy").exception
    assert "--input_shape is for made-up feeds" in str(refused)


def test_the_standard_of_eight_bit_models_is_said(tmp_path: pathlib.Path) -> None:
    for name, weights in (
        ("float", "w = Const(float [[1.0, 2.0], [3.0, -4.0]])"),
        ("coded", '''codes = Const(quint8 [[159, 191], [223, 0]])
            low = Const(float -4.0)
            high = Const(float 4.0)
            w = Dequantize(codes, low, high, T=quint8, mode="MIN_FIRST")'''),
    ):  # fmt: skip
        text = f"""
            x = Placeholder(dtype=float, shape=[8,2])
            {weights}
            y = MatMul(x, w, T=float)
        """
        save(parse(text), tmp_path / f"{name}.pb")
    result = call(str(tmp_path / "float.pb"), str(tmp_path / "coded.pb"))
    assert result.exit_code == 0, result.output
    assert "equal eight-bit: top class 90%, KL 0.1, SNR 15 dB, 2 sets of made-up feeds" in result.output
    assert "better judged on --data" in result.output
    assert "SNR dB" in result.output


def test_the_bytes_of_a_recording_are_an_input(tmp_path: pathlib.Path) -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(16000)
        writer.writeframes(bytes(320))
    (tmp_path / "silence.wav").write_bytes(file.getvalue())
    graph = parse("""
        wav = Placeholder(dtype=string)
        sound = DecodeWav(wav, desired_channels=1)
        labels_softmax = Softmax(sound, T=float)
        other = Placeholder(dtype=float)
    """)
    save(graph, tmp_path / "model.pb")
    model, sound = str(tmp_path / "model.pb"), str(tmp_path / "silence.wav")
    result = call(model, model, f"--inputs=wav={sound}", "--outputs=labels_softmax", "--json")
    assert result.exit_code == 0
    assert json.loads(result.output)["outputs"][0]["shape"] == [160, 1]
    with pytest.raises(UsageError, match="the shape of the input 'other:0' is not known"):
        raised(call(model, model, f"--inputs=other={sound}"))
    with pytest.raises(UsageError, match="cannot be read"):
        raised(call(model, model, f"--inputs=wav={tmp_path}/none.wav"))


def raised(result: Result) -> None:
    """Raises what the command raised."""
    assert result.exception is not None
    raise result.exception


@pytest.mark.parametrize("columns", [30, 55, 60, 64, 67, 80])
def test_names_and_numbers_stay_whole_in_narrow_terminals(
    columns: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = "x = Placeholder(dtype=float, shape=[1,6])\n final_result_of_the_network = {}(x, T=float)"
    save(parse(text.format("Sigmoid")), tmp_path / "a.pb")
    save(parse(text.format("Softmax")), tmp_path / "b.pb")
    result = call(str(tmp_path / "a.pb"), str(tmp_path / "b.pb"))
    assert result.exit_code == 1
    assert "top-1" in result.output
    assert "100.00%" in result.output
    assert "worst at" in result.output
    assert "…" not in result.output
    if columns < 68:
        assert "final_result_of_the_network [1,6]" in result.output


def test_engines_compares_a_model_with_itself(models: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    result = call(models[0], "--engines")
    assert result.exit_code == 0, result.output
    assert "on the reference engine" in result.output
    for wrong, said in (
        ((models[0],), "nothing to compare with"),
        ((*models, "--engines"), "leave the second one out"),
    ):
        answer = CliRunner().invoke(group, ["verify", *wrong])
        assert isinstance(answer.exception, UsageError) or answer.exit_code == 2
        assert said in str(answer.exception.__cause__ or answer.exception) + answer.output


def test_engines_is_nothing_for_a_finished_file() -> None:
    result = call(str(ROOT / "tests" / "fixtures" / "tflite" / "sparse_few.tflite"), "--engines")
    assert result.exit_code != 0
    assert "a finished file has one, LiteRT" in str(result.exception) + result.output


def test_a_share_of_dropout_that_is_set_for_good_needs_no_word(tmp_path: pathlib.Path) -> None:
    """As in what ``export`` writes; another input that the second model does not read is told of."""
    text = """
        x = Placeholder(dtype=float, shape=[1,4])
        keep = Placeholder(dtype=float, shape=[])
        other = Placeholder(dtype=float, shape=[])
        sizes = Const(int32 [1, 4])
        drawn = RandomUniform(sizes, T=int32, dtype=float, seed=0, seed2=0)
        sum = Add(drawn, keep, T=float)
        mask = Floor(sum, T=float)
        scaled = RealDiv(x, keep, T=float)
        dropped = Mul(scaled, mask, T=float)
        y = {}(dropped, {}, T=float)
    """
    save(parse(text.format("Relu", "").replace(", ,", ",")), tmp_path / "a.pb")
    save(parse("x = Placeholder(dtype=float, shape=[1,4])\ny = Relu(x, T=float)"), tmp_path / "b.pb")
    assert call(str(tmp_path / "a.pb"), str(tmp_path / "b.pb")).exit_code == 0
    save(parse(text.format("Add", "other")), tmp_path / "a.pb")
    result = call(str(tmp_path / "a.pb"), str(tmp_path / "b.pb"))
    assert result.exit_code == 1
    assert "does not depend on 'other'" in " ".join(result.output.split())
