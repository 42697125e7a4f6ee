"""The commands strip_unused and optimize_for_inference: the original's flags and messages."""

import pathlib

import pytest
from click.testing import CliRunner, Result

from pocketgraph import formats
from pocketgraph.cli.change import optimize_for_inference, strip_unused
from pocketgraph.errors import FreezeError, UsageError
from pocketgraph.graph.text_format import parse

TEXT = """
    image = Placeholder(dtype=float, shape=[?,2])
    noise = Placeholder(dtype=float)
    w = Const(float [[1.0, 2.0], [3.0, 4.0]])
    read = Identity(w, T=float)
    product = MatMul(image, read, T=float)
    unused = Relu(noise, T=float)
    y = Softmax(product, T=float)
"""


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    formats.save(parse(TEXT), tmp_path / "frozen.pb")
    return str(tmp_path / "frozen.pb")


def run(command: object, *flags: str) -> Result:
    return CliRunner().invoke(command.command, flags, catch_exceptions=False)  # type: ignore[attr-defined]


def test_strip_unused(model: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out.pb")
    result = run(
        strip_unused, f"--input_graph={model}", "--input_binary", f"--output_graph={out}",
        "--input_node_names=product", "--output_node_names", "y", "--placeholder_type_enum=2",
    )  # fmt: skip
    assert result.output == "2 ops in the final graph.\n"
    graph = formats.load(out)
    assert [(node.name, node.op) for node in graph] == [("product", "Placeholder"), ("y", "Softmax")]
    assert graph["product"].dtype("dtype").name == "double"
    ends = (f"--output_graph={out}", "--input_node_names=image", "--output_node_names=y", "--output_binary=false")
    assert run(strip_unused, f"--input_graph={model}", *ends).exit_code == 0
    assert pathlib.Path(out).read_text().startswith("node {")


def test_optimize_for_inference(model: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out.pb")
    ends = (f"--input={model}", f"--output={out}", "--input_names=image", "--output_names=y")
    assert run(optimize_for_inference, *ends).output == "4 ops in the final graph.\n"
    assert list(formats.load(out).nodes) == ["image", "w", "product", "y"]
    for more in (
        ("--frozen_graph=False",),
        ("--toco_compatible",),
        ("--like=1.15",),
        ("--placeholder_to_const_names", "a=true"),
    ):
        assert run(optimize_for_inference, *ends, *more).exit_code == 0


def test_lists_may_have_blanks_and_a_comma_at_the_end(model: str, tmp_path: pathlib.Path) -> None:
    """The original refuses them; freeze_graph, its sister, takes them."""
    out = str(tmp_path / "out.pb")
    ends = ("--input_node_names= image , noise", "--output_node_names=y, unused,", "--placeholder_type_enum=1,2")
    assert run(strip_unused, f"--input_graph={model}", f"-o{out}", *ends).exit_code == 0
    assert formats.load(out)["noise"].dtype("dtype").name == "double"
    run(optimize_for_inference, f"--input={model}", f"-o{out}", "--input_names= image,", "--output_names= y ")
    assert list(formats.load(out).nodes) == ["image", "w", "product", "y"]


def test_what_they_refuse(model: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out.pb")
    with pytest.raises(FreezeError, match=r"Input graph file 'no\.pb' does not exist!"):
        run(strip_unused, "--input_graph=no.pb", f"--output_graph={out}", "--output_node_names=y")
    with pytest.raises(FreezeError, match=r"Input graph file 'no\.pb' does not exist!"):
        run(optimize_for_inference, "--input=no.pb", f"--output={out}", "--output_names=y")
    with pytest.raises(UsageError, match="You need to supply the name of a node to --output_node_names"):
        run(strip_unused, f"--input_graph={model}", f"--output_graph={out}")
    with pytest.raises(UsageError, match="no outputs were named"):
        run(optimize_for_inference, f"--input={model}", f"--output={out}")
    with pytest.raises(UsageError, match="no place for the result was named"):
        run(strip_unused, f"--input_graph={model}", "--output_node_names=y")
    with pytest.raises(UsageError, match="--placeholder_type_enum: 'float' is no list of numbers"):
        run(
            strip_unused, f"--input_graph={model}", f"-o{out}", "--output_node_names=y", "--placeholder_type_enum=float"
        )
    with pytest.raises(UsageError, match="You need to supply the name of a node to --output_node_names"):
        run(strip_unused, f"--input_graph={model}", f"--output_graph={out}", "--output_node_names= ,")
    with pytest.raises(FreezeError, match="The following input nodes were not found: imag; did you mean 'image'"):
        run(optimize_for_inference, f"--input={model}", f"--output={out}", "--output_names=y", "--input_names=imag")
    assert not pathlib.Path(out).exists()
