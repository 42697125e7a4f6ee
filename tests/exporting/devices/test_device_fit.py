"""fit: what a model takes, against figures worked out by hand and published ones; verdicts, files and bad calls."""

from __future__ import annotations

import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.exporting.devices import family_times
from pocketgraph.exporting.devices.device_fit import fit
from pocketgraph.exporting.devices.device_table import Device, chosen_devices, devices, published_models
from pocketgraph.exporting.devices.device_table import read_device_file as read
from pocketgraph.exporting.devices.family_times import (
    FAMILIES,
    YARDSTICK,
    cost_family,
    measured_times,
    yardstick,
    yardstick_operations,
)
from pocketgraph.exporting.devices.latency_model import class_model, estimate
from pocketgraph.exporting.devices.memory_plan import in_eight_bits, memory_plan
from pocketgraph.formats import save
from pocketgraph.graph import Node, Tensor
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value

NETWORK = """
    x = Placeholder(dtype=float, shape=[1, 64, 64, 3])
    w = Const(float[3, 3, 3, 16])
    a = Conv2D(x, w, T=float, strides=[1, 2, 2, 1], padding="SAME")
    b = Relu(a, T=float)
    axes = Const(int32[2] [1, 2])
    c = Mean(b, axes, T=float, Tidx=int32)
    v = Const(float[16, 10])
    d = MatMul(c, v, T=float)
    y = Softmax(d, T=float)
"""


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few runs are enough where no test looks at the times themselves."""
    monkeypatch.setattr(family_times, "ENOUGH", 0.01)
    monkeypatch.setattr(family_times, "PROFILES", 2)


def network() -> Any:
    """A small classifier; weights in text would be long."""

    def filled(node: Node) -> Node:
        if node.name not in ("w", "v"):
            return node
        shape = (3, 3, 3, 16) if node.name == "w" else (16, 10)
        values = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        return node.with_attrs(value=Tensor.from_numpy(values), dtype=FLOAT)

    text = re.sub(r"Const\(float\[[^]]*\]\)", "Const(float 0)", NETWORK)
    return parse(text).map_nodes(filled)


def test_every_row_has_a_source_and_a_year() -> None:
    names = [device.name for device in devices()]
    assert len(names) == len(set(names))
    assert {"hikey-960", "guide-phone"} <= set(names)
    assert {device.kind for device in devices()} == {"phone", "board", "microcontroller", "browser"}
    for device in devices():
        assert device.source, device.name
        assert 2010 < device.year < 2030
        assert device.published or device.gflops


def test_the_guides_phone_takes_half_a_second_for_five_billion_operations() -> None:
    (phone,) = chosen_devices(["guide-phone"])
    found = estimate(phone, "float", dict.fromkeys(FAMILIES, 1.0), {"Conv2D": 5_000_000_000})
    assert found is not None
    assert found.milliseconds == pytest.approx(500)


@pytest.mark.parametrize(
    ("is_micro", "precision", "pairs", "half", "nine_in_ten"),
    [(False, "float", 70, 1.15, 1.4), (False, "int8", 40, 1.2, 1.5), (True, "int8", 12, 1.3, 8)],
)
def test_published_times_are_estimated(
    is_micro: bool, precision: str, pairs: int, half: float, nine_in_ten: float
) -> None:
    known = class_model(is_micro, precision)
    assert len(known.left_out) >= pairs
    assert known.median_factor < half
    assert known.error < nine_in_ten
    assert np.mean([one.factor <= known.error + 1e-9 for one in known.left_out]) >= 0.9


def test_an_estimate_of_a_published_model_is_near_its_time() -> None:
    (pixel,) = chosen_devices(["pixel-3"])
    for name in ("mobilenet_v1_1.0_224", "inception_v3_299", "nasnet_mobile_224"):
        found = estimate(pixel, "float", dict(published_models()[name]), {})
        assert found is not None
        assert found.low < pixel.published["float"][name] < found.high


def test_the_yardstick_is_the_published_network() -> None:
    # Howard and others, MobileNets: 149 million multiplications and additions at 0.5 and 224; (160 / 224)^2 of them
    operations = sum(yardstick_operations().values())
    assert operations / 2 == pytest.approx(149e6 * (160 / 224) ** 2, rel=0.02)
    assert YARDSTICK in published_models()
    weights = sum(node.attrs["value"].nbytes for node in yardstick() if node.op == "Const" and node.name != "axes")
    assert weights / 4 == pytest.approx(1.33e6, rel=0.02)


def test_families_times_add_up() -> None:
    feeds = {"x": np.zeros((1, 64, 64, 3), np.float32)}
    found = measured_times(network(), ["y"], feeds)
    assert sum(ms for _, ms in found.nodes.values()) <= sum(found.families.values()) * 1.001
    assert found.families["convolution"] > 0
    assert found.families["depthwise"] == 0
    assert cost_family("tfl.depthwise_conv_2d") == "depthwise"


def program() -> Program:
    """x (400 bytes) -> a (800) -> b (200) -> y (40), and weights of 1,000 and 40 bytes."""
    x, a, b, y = (Value(name, FLOAT, (size,)) for name, size in (("x", 100), ("a", 200), ("b", 50), ("y", 10)))
    w = Value("w", FLOAT, (10, 25), Constant.of(np.zeros((10, 25), np.float32)))
    bias = Value("bias", FLOAT, (10,), Constant.of(np.zeros(10, np.float32)))
    return Program([x], [y], [
        Operation("A", [x], [a]), Operation("B", [a, w], [b]), Operation("C", [b, w, bias], [y]),
    ])  # fmt: skip


def test_the_plan_of_a_chain_by_hand() -> None:
    plan = memory_plan(program())
    assert plan.weights == 1000 + 40
    # the input stays until the end (448 of 64s), beside a (832) and b (256)
    assert plan.arena == 448 + 832 + 256
    assert plan.largest == (("a", 800), ("x", 400), ("b", 200))
    assert plan.total == plan.weights + plan.arena
    eight = memory_plan(in_eight_bits(program()))
    assert eight.weights == 250 + 40
    assert eight.arena < plan.arena / 2


def test_a_small_network(tmp_path: pathlib.Path) -> None:
    found = fit(network(), devices=["pixel-3", "nucleo-l4r5zi"], budget_ms=1000)
    assert found.precision == "float"
    assert found.flops.by_op["Conv2D"] == 32 * 32 * 16 * 27 * 2
    assert found.memory["float"].weights == 4 * (27 * 16 + 16) + 4 * (16 * 10 + 10) + 4 * 2  # biases are LiteRT's, axes
    phone, micro = found.devices
    assert set(phone.latency) == {"float", "int8"}
    assert set(micro.latency) == {"int8"}
    assert phone.fits == micro.fits == "yes"
    assert micro.memory["int8"] == found.memory["int8"].arena  # weights stay in flash
    assert phone.latency["float"].low < phone.latency["float"].milliseconds < phone.latency["float"].high
    assert not found.advice


def test_what_would_help() -> None:
    found = fit(network(), devices=["pixel-3", "nrf5340-dk"], budget_ms=1e-6)
    assert [one.fits for one in found.devices] == ["no", "no"]
    by_name = {one.name: one for one in found.advice}
    assert set(by_name) == {"eight bits", "smaller pictures", "narrower layers"}
    assert set(by_name["eight bits"].milliseconds) == {"pixel-3"}  # the other is judged in eight bits
    assert "48 x 48 pixels instead of 64 x 64" in by_name["smaller pictures"].text
    for name in ("smaller pictures", "narrower layers"):
        for device in found.devices:
            judged = device.latency.get("float", device.latency["int8"])
            assert by_name[name].milliseconds[device.device.name] < judged.milliseconds


def test_models_unlike_the_published_ones_are_less_sure() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[64, 64])\ny = Softmax(x, T=float)")
    assert any("less sure" in note for note in fit(graph).notes)
    assert not any("less sure" in note for note in fit(yardstick()).notes)


def test_memory_asked_for() -> None:
    found = fit(network(), devices=["pixel-3"], memory=1000)
    assert found.devices[0].fits == "no"
    assert "bytes of memory" in found.devices[0].reasons[0]


def test_operations_of_which_none_is_counted_are_unknown(tmp_path: pathlib.Path, capsys: Any) -> None:
    path = tmp_path / "boxes.pb"
    save(parse("""
        boxes = Placeholder(dtype=float, shape=[5,4])
        scores = Placeholder(dtype=float, shape=[5])
        most = Const(int32 3)
        y = NonMaxSuppression(boxes, scores, most)
    """), path)  # fmt: skip
    assert call("fit", path) == 0
    assert "boxes.pb: an unknown number of operations a run\n" in capsys.readouterr().out


def test_the_command(tmp_path: pathlib.Path, capsys: Any) -> None:
    path = tmp_path / "small.pb"
    save(network(), path)
    assert call("fit", path) == 0
    said = capsys.readouterr().out
    assert "917.87k operations a run" in said
    for device in devices():
        assert device.name in said
    assert "half of them within a factor of" in said
    assert call("fit", path, "--device=pixel-3", "--budget-ms=1e-6") == 1
    assert "What would help" in capsys.readouterr().out
    assert call("fit", path, "--budget-ms=1e-6") == 1
    assert call("fit", path, "--budget-ms=1e6", "--device=pixel-3") == 0
    capsys.readouterr()
    assert call("fit", path, "--json", "--device=pixel-3", "-o", tmp_path / "fit.svg") == 0
    answer = json.loads(capsys.readouterr().out)
    (device,) = answer["devices"]
    estimate = device["estimates"]["float"]
    assert estimate["frames_a_second"] == pytest.approx(1000 / estimate["milliseconds"])
    assert len(answer["validation"][0]["pairs"]) > 70
    svg = ElementTree.fromstring((tmp_path / "fit.svg").read_text())
    texts = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "pixel-3" in texts
    assert call("fit", "--device=list") == 0
    assert "MLPerf" in capsys.readouterr().out


def test_the_picture_has_each_device_in_each_precision(tmp_path: pathlib.Path) -> None:
    from pocketgraph.exporting.devices.picture import as_svg, points

    found = fit(network(), budget_ms=5)
    svg = as_svg(found, 'a <b> & "c"')
    root = ElementTree.fromstring(svg)
    circles = [e for e in root.iter("{http://www.w3.org/2000/svg}circle") if e.get("cy") != "42"]
    assert len(circles) == len(points(found.devices)) == sum(len(o.latency) for o in found.devices if o.device.memory)
    assert 'a <b> & "c": latency' in "".join(root.itertext())


# Bad input


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--device=pixl-3"], 2, "there is no device 'pixl-3'; did you mean 'pixel-3'"),
        (["--device=abacus"], 2, "--device=list shows them"),
        (["--budget-ms=-1"], 2, "--budget-ms is a number above 0"),
        (["--device-file=none.json"], 2, "there is no such file"),
        (["-o", "fit.doc"], 2, "the picture is written as .svg"),
        (["--outputs=nowhere"], 1, "nowhere"),
    ],
)
def test_bad_calls(
    arguments: list[str], code: int, message: str, tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(network(), "small.pb")
    assert call("fit", "small.pb", *arguments) == code
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.pb"]


def test_no_model(capsys: Any) -> None:
    assert call("fit") == 2
    assert "no model given" in capsys.readouterr().err


def test_open_sizes_are_asked_for() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[?, ?, ?, 3])\ny = Relu(x, T=float)")
    with pytest.raises(UsageError, match="leaves some open: 'x'"):
        fit(graph)
    assert fit(graph, shapes={"x": (1, 8, 8, 3)}).flops.total == 8 * 8 * 3


def test_sizes_that_old_files_leave_out_are_asked_for() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        axis = Const(int32 1)
        y = ConcatV2(x, x, axis, T=float, N=2)
    """)
    with pytest.raises(UsageError, match="states the input 'x' as \\[\\]"):
        fit(graph)
    assert fit(graph, shapes={"x": (4, 4)}).memory["float"].arena >= 2 * 4 * 16


def test_numbers_that_are_places_in_a_table_are_made_up_so_that_it_runs() -> None:
    graph = parse("""
        place = Placeholder(dtype=int32, shape=[4])
        table = Const(float[2, 2] [[1, 2], [3, 4]])
        axis = Const(int32 0)
        rows = GatherV2(table, place, axis, Tparams=float, Tindices=int32, Taxis=int32)
        y = Exp(rows, T=float)
    """)
    found = fit(graph)
    assert not any("does not run here" in note for note in found.notes)


def test_unknown_costs_are_said() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[4])\nz = Strange(x)\ny = Relu(z, T=float)")
    found = fit(graph, devices=["pixel-3"], budget_ms=10)
    assert any("not counted" in note and "Strange" in note for note in found.notes)
    assert any("no times are estimated" in note for note in found.notes)
    assert found.devices[0].latency == {}
    assert found.devices[0].fits == "perhaps"


def test_a_cycle_and_an_empty_graph(tmp_path: pathlib.Path, capsys: Any) -> None:
    cycle = parse("x = Placeholder(dtype=float, shape=[4])\na = Add(x, b, T=float)\nb = Relu(a, T=float)")
    save(cycle, tmp_path / "cycle.pb")
    assert call("fit", tmp_path / "cycle.pb", "--outputs=b") == 1
    assert "cycle" in capsys.readouterr().err
    save(parse(""), tmp_path / "empty.pb")
    assert call("fit", tmp_path / "empty.pb") != 0
    assert capsys.readouterr().err.startswith("error: ")


# One's own devices


def benchmark(path: pathlib.Path, capsys: Any, *arguments: Any) -> dict[str, Any]:
    assert call("benchmark_model", path, "--json", "--max_num_runs=3", *arguments) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_device_from_benchmark_model(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(network(), tmp_path / "small.pb")
    save(yardstick(), tmp_path / "other.pb")
    document = benchmark(tmp_path / "small.pb", capsys, "--output_layer=y")
    (tmp_path / "board.json").write_text(json.dumps(document))
    (device,) = read(tmp_path / "board.json")
    assert (device.name, device.kind) == ("board", "own")
    assert device.gflops == pytest.approx(document["flops"]["total"] / document["no_stats"]["average"] / 1e3)
    found = fit(tmp_path / "small.pb", device_file=str(tmp_path / "board.json"))
    assert [one.device.name for one in found.devices] == ["board"]
    # the same model ran there: no estimate is needed
    assert found.devices[0].latency["float"].milliseconds == pytest.approx(document["no_stats"]["average"] / 1e3)
    other = fit(tmp_path / "other.pb", device_file=str(tmp_path / "board.json")).devices[0].latency["float"]
    assert other.low < other.milliseconds < other.high
    # a device that is ten times as slow takes ten times as long
    for key in ("average", "min", "max"):
        document["no_stats"][key] *= 10
    document["by_type"] = {op: 10 * time for op, time in document["by_type"].items()}
    (tmp_path / "slow.json").write_text(json.dumps(document))
    slow, fast = (read(tmp_path / f"{name}.json")[0] for name in ("slow", "board"))
    times = dict(published_models()["mobilenet_v2_1.0_224"])
    ratio = [estimate(one, "float", times, {"Conv2D": 10**9}) for one in (slow, fast)]
    assert ratio[0] is not None
    assert ratio[1] is not None
    assert ratio[0].milliseconds / ratio[1].milliseconds == pytest.approx(10)


def test_devices_in_rows_of_ones_own(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[[device]]\nname = "mine"\nmemory_mb = 8\n[device.float]\n"mobilenet_v1_1.0_224" = 100\n')
    (device,) = chosen_devices([], path)
    assert device == Device(
        "mine", "mine", "own", 0, "", 8 << 20, published={"float": {"mobilenet_v1_1.0_224": 100.0}}
    )  # fmt: skip
    found = estimate(device, "float", dict(published_models()["mobilenet_v1_1.0_224"]), {})
    assert found is not None
    assert found.milliseconds == pytest.approx(100)
    assert [one.name for one in chosen_devices(["pixel-3", "mine"], path)] == ["pixel-3", "mine"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no devices in it"),
        ("device = 3", "there are no devices in it"),
        ("[[device]]\nyear = 3", "a device has no name"),
        ('[[device]]\nname = "a"', "nothing says how fast it is"),
        ('[[device]]\nname = "a"\ngflops = -1', "gflops is not a number above 0"),
        ('[[device]]\nname = "a"\ngflops = nan', "gflops is not a number above 0"),
        ('[[device]]\nname = "a"\ngflops = 1\nkind = "toaster"', "kind is none of"),
        ('[[device]]\nname = "a"\n[device.float]\n"mobilenet_v1_1.0_225" = 3', "none of the published models"),
        ('[[device]]\nname = "a"\n[device.float]\n"mobilenet_v1_1.0_224" = 0', "not a number above 0"),
        ("[[device", "this is no file of devices"),
        ("a = " + "[" * 100_000, "this is no file of devices"),
        ('[[device]]\nname = "a"\ngflops = 1' + "0" * 400, "gflops is not a number above 0"),
        ('[[device]]\nname = "a"\ngflops = 1\nmemory_mb = 1e308', "memory_mb is not a number above 0"),
        ('{"a": ' * 100_000, "this is not what benchmark_model"),
        (
            '{"flops": {"by_op": {"Add": 1}, "total": 1' + "0" * 400 + '}, "by_type": {}, "machine": {"processor": ""},'
            ' "threads": 1, "no_stats": {"average": 1, "min": 1, "max": 1}, "model": ""}',
            "this is not what benchmark_model",
        ),
        ("{", "this is not what benchmark_model"),
        ("{}", "this is not what benchmark_model"),
        ('{"flops": {"by_op": {"Conv2D": "many"}}}', "this is not what"),
        ("\x00\x01", "this is no file of devices"),
    ],
)
def test_damaged_device_files(text: str, message: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "device"
    path.write_text(text)
    with pytest.raises(FormatError, match=re.escape(message)):
        read(path)


def test_a_device_file_that_is_no_text(tmp_path: pathlib.Path) -> None:
    (tmp_path / "device").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(FormatError, match="this is no text"):
        read(tmp_path / "device")


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_model_that_takes_no_time_has_no_latency(
    flags: list[str], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2, 3])
        p = Const(int32 [0, 0])
        y = Transpose(x, p, T=float, Tperm=int32)
    """)
    save(graph, tmp_path / "net.pb")
    (tmp_path / "own.toml").write_text('[[device]]\nname = "own"\ngflops = 3')
    assert call("fit", tmp_path / "net.pb", *flags) in (0, 1)
    assert call("fit", tmp_path / "net.pb", f"--device_file={tmp_path / 'own.toml'}", *flags) in (0, 1)
    assert "inf" not in capsys.readouterr().out
