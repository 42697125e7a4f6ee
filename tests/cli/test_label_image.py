"""The command: the original's flags and lines, several pictures at once, and one line for each mistake."""

import json
import pathlib

import pytest
from PIL import Image

import command_line
from pocketgraph import load, save
from pocketgraph.graph.text_format import parse


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with a graph whose three scores are the average red, green and blue; labels; two pictures."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,2,2,3])
        axes = Const(int32 [1, 2])
        scores = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    """)
    save(graph, tmp_path / "graph.pb")
    (tmp_path / "names.txt").write_text("red\ngreen\nblue\n")
    Image.new("RGB", (5, 7), (255, 102, 0)).save(tmp_path / "orange.png")
    Image.new("RGB", (5, 7), (0, 0, 254)).save(tmp_path / "blue.bmp")
    (tmp_path / "notes.txt").write_text("not a picture")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of one call."""
    code = command_line.call("label_image", *arguments)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


ORIGINAL = ("--graph=graph.pb", "--labels=names.txt", "--input_width=2", "--input_height=2", "--input_mean=0")
ORIGINAL += ("--input_std=255", "--input_layer=x", "--output_layer=scores:0")


def test_the_original_flags_and_lines(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *ORIGINAL, "--image=orange.png")
    assert (code, err) == (0, "")
    assert out == "red (0): 1\ngreen (1): 0.4\nblue (2): 0\n"


def test_the_python_style(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *ORIGINAL, "--image", "blue.bmp", "--style=python", "-k", "1")
    assert out == "blue 0.99607843\n"


@pytest.mark.parametrize("style", ["cpp", "python"])
def test_a_very_long_label_is_cut_in_a_line_and_whole_in_json(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    label = "long" * 50_000
    (folder / "names.txt").write_text(f"{label}\ngreen\nblue\n")
    _, out, _ = run(capsys, *ORIGINAL, "--image=orange.png", f"--style={style}")
    assert out.splitlines()[0] == "long" * 50 + ("… (0): 1" if style == "cpp" else "… 1.0")
    _, out, _ = run(capsys, *ORIGINAL, "--image=orange.png", "--json")
    assert json.loads(out)[0]["predictions"][0]["label"] == label


def test_several_pictures(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--graph=graph.pb", "--labels=names.txt", "--top=1", "orange.png", "blue.bmp")
    assert code == 0
    assert out == "orange.png:\nred (0): 1\n\nblue.bmp:\nblue (2): 0.996078\n"


def test_the_model_may_be_listed_first(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "graph.pb", "--labels=names.txt", "--top=1", "orange.png")
    assert code == 0
    assert out == "red (0): 1\n"
    (folder / "graph.bin").write_bytes((folder / "graph.pb").read_bytes())
    assert run(capsys, "graph.bin", "--labels=names.txt", "--top=1", "orange.png")[:2] == (code, out)
    save(load("graph.pb"), "model", form="saved_model")
    assert run(capsys, "model", "--labels=names.txt", "--top=1", "orange.png")[:2] == (code, out)


def test_the_folder_around_a_model_may_be_listed_first(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = run(capsys, "graph.pb", "orange.png", "--labels=names.txt")
    assert expected[0] == 0
    save(load("graph.pb"), folder / "export" / "1700000000", form="saved_model")
    (folder / "net").mkdir()
    (folder / "graph.pb").rename(folder / "net" / "graph.pb")
    for around in ("export", "net"):
        assert run(capsys, around, "orange.png", "--labels=names.txt")[:2] == expected[:2]


def test_json(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--graph=graph.pb", "--image=orange.png", "-k1", "--json")
    assert json.loads(out) == [{"image": "orange.png", "predictions": [{"index": 0, "label": "class 0", "score": 1.0}]}]


def test_root_dir_is_for_graph_and_image(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "elsewhere").mkdir()
    for name in ("graph.pb", "orange.png"):
        (folder / name).rename(folder / "elsewhere" / name)
    code, out, _ = run(capsys, "--root_dir=elsewhere", "--graph=/graph.pb", "--image=orange.png", "--labels=names.txt")
    assert code == 0
    assert out.startswith("red (0): 1\n")


def test_one_bad_picture_does_not_stop_the_others(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--graph=graph.pb", "-k1", "notes.txt", "blue.bmp")
    assert code == 1
    assert out == "blue.bmp:\nclass 2 (2): 0.996078\n"
    assert "notes.txt: this is not a JPEG, PNG, BMP, GIF or WebP picture" in err
    assert err.endswith("error: 1 of 2 pictures could not be labelled\n")


def test_too_few_labels_are_told(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "names.txt").write_text("red\n")
    code, out, err = run(capsys, *ORIGINAL, "orange.png")
    assert code == 0
    assert out.splitlines()[1] == "class 1 (1): 0.4"
    assert err == "warning: the labels file has 1 line and the output 3 scores: they may not belong together\n"


def test_self_test(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *ORIGINAL, "--image=orange.png", "--self_test=true")
    assert (code, out) == (1, "")
    assert err == "error: orange.png: Expected label #653 but got #0; Self-test failed!\n"
    assert run(capsys, *ORIGINAL, "--image=orange.png", "--self_test=false")[0] == 0


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--preset=list")
    assert code == 0
    assert "InceptionV3/Predictions/Reshape_1" in out
    assert "retrained_mobilenet" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--image=orange.png"], 2, "no graph is given; pass --graph=FROZEN.pb"),
        (["--graph=graph.pb"], 2, "no picture is given; pass --image=PICTURE"),
        (["--graph=graph.pb", "--image="], 2, "no picture is given; pass --image=PICTURE"),
        (["--graph=none.pb", "orange.png"], 1, "none.pb"),
        (["none.keras", "orange.png"], 1, "none.keras: there is no such file"),
        (["--graph=graph.pb", "none.png"], 1, "none.png: the picture cannot be read: No such file or directory"),
        (["--graph=graph.pb", "orang.png"], 1, "such file or directory; did you mean 'orange.png'?"),
        (["--graph=graph.pb", "https://a.org/orange.png"], 1, "that is an address"),
        (["--graph=graph.pb", "--labels=name.txt", "orange.png"], 1, "did you mean 'names.txt'"),
        (["--graph=graph.pb", "notes.txt"], 1, "notes.txt: this is not a JPEG, PNG, BMP, GIF or WebP picture"),
        (["--graph=graph.pb", "--labels=none.txt", "orange.png"], 1, "none.txt: the labels cannot be read"),
        (["--graph=graph.pb", "--labels=graph.pb", "orange.png"], 1, "graph.pb: this is not a labels file"),
        (["--graph=names.txt", "orange.png"], 1, "names.txt"),
        (["--graph=graph.pb", "--input_width=299", "orange.png"], 2, "takes 2 here, not --input_width=299"),
        (["--graph=graph.pb", "--input_layer=y", "orange.png"], 2, "--input_layer: the graph has no node 'y'"),
        (["--graph=graph.pb", "--output_layer=score", "orange.png"], 2, "did you mean 'scores'?"),
        (["--graph=graph.pb", "--input_layer=Mul", "orange.png"], 2, "no node 'Mul'; the likely input is 'x'"),
        (["--graph=graph.pb", "--output_layer=final_result", "orange.png"], 2, "; the likely output is 'scores'"),
        (["--graph=graph.pb", "--output_layer=x", "orange.png"], 1, "not one score a class"),
        (["--graph=graph.pb", "--preset=inception", "orange.png"], 2, "there is no preset 'inception'"),
        (["--graph=graph.pb", "--input_std=0", "orange.png"], 2, "--input_std is 0"),
        (["--graph=graph.pb", "--input_width=0", "orange.png"], 2, "input_width"),
        (["--graph=graph.pb", "--input_mean=dark", "orange.png"], 2, "input_mean"),
        (["--graph=graph.pb", "--feed=keep_prob", "orange.png"], 2, "--feed 'keep_prob' is not NAME=VALUE"),
        (["--graph=graph.pb", "--feed=keep_prob=1", "orange.png"], 2, "--feed: the graph has no node 'keep_prob'"),
        (["--graph=graph.pb", "--top=0", "orange.png"], 2, "top"),
        (["--graph=graph.pb", "--outputlayer=x", "orange.png"], 2, "--outputlayer"),
    ],
)
def test_mistakes_are_one_line(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    got, out, err = run(capsys, *arguments)
    assert got == code
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_line_end_in_a_name_ends_no_line(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = Image.Exif()
    mark[0x0112] = 6
    for name in ("a\nb.jpg", "c.jpg"):
        Image.new("RGB", (8, 8)).save(folder / name, exif=mark if name == "c.jpg" else Image.Exif())
    code, out, err = run(capsys, "--graph=graph.pb", "--labels=names.txt", "a\nb.jpg", "c.jpg")
    assert code == 0
    assert "a\\nb.jpg:\n" in out
    assert err.count("mark to be turned") == 1
