"""``pocketgraph fit``: whether a model fits a device, and what to do when it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import feed_option, feeds, fixed_shape_option, shapes_of
from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo, echo_json
from pocketgraph.errors import UsageError

if TYPE_CHECKING:
    from pocketgraph.exporting.devices.device_fit import DeviceEstimate, DeviceFit
    from pocketgraph.exporting.devices.latency_model import Latency

MOST_LAYERS = 5  # that are listed, the slowest
MOST_TIMES = 4  # devices named with each advice; --json has all


@click.command("fit")
@click.argument("model", required=False)
@click.option("--device", "devices", default="", help="Comma list of devices; `list` shows all. Default: all.")
@click.option(
    "--device_file",
    help="One's own: what `benchmark_model MODEL --json` printed there, or rows as the table of devices has them.",
)
@click.option("--budget_ms", type=float, help="Milliseconds that a run may take.")
@click.option("--memory", type=float, help="Megabytes that it may take. Default: what the device has.")
@fixed_shape_option
@click.option("--inputs", default="", help="Comma list of tensors to feed. Default: as for export.")
@click.option("--outputs", default="", help="Comma list of tensors to compute. Default: as for export.")
@feed_option
@click.option("-o", "--output", "picture", default="", help="Draw latency against memory here: picture.svg.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON and nothing else.")
def command(model: str | None, devices: str, device_file: str | None, as_json: bool, **flags: Any) -> int:
    """Say whether MODEL fits devices: operations, weights, memory by an exact plan, and estimated latency.

    Leaves with 1 when a device or a budget was asked for and the model does not fit: not one of the devices, or, with a
    budget alone, none of the table. Latencies are estimates from times on this machine; the last lines say how far off
    such estimates are.

    \b
      pocketgraph fit frozen.pb
      pocketgraph fit frozen.pb --device=raspberry-pi-4,pixel-3 --budget-ms=30
      pocketgraph fit frozen.pb --device-file=my_board.json --memory=50 -o fit.svg
    """
    if devices == "list":
        for line in _listed():
            echo(line)
        return 0
    if not model:
        raise UsageError("no model given", hint="give its path behind fit")
    from pocketgraph.exporting.devices.device_fit import fit
    from pocketgraph.formats.files import check_place, write_atomically

    picture = flags["picture"]
    if picture:
        if not picture.lower().endswith(".svg"):
            raise UsageError(f"the picture is written as .svg, not as '{picture}'", hint="-o fit.svg")
        check_place(picture)
    budget, memory = flags["budget_ms"], flags["memory"]
    found = fit(
        model,
        inputs=names(flags["inputs"]) or None,
        outputs=names(flags["outputs"]) or None,
        shapes=shapes_of(flags["input_shape"]),
        values=feeds(flags["feed"]),
        devices=names(devices),
        device_file=device_file,
        budget_ms=budget,
        memory=None if memory is None else round(memory * 1e6),
    )
    if as_json:
        echo_json(as_dict(found))
    else:
        for line in _lines(found, os.path.basename(os.path.normpath(model))):
            echo(line)
        for note in found.notes:
            echo(f"note: {note}", err=True)
    if picture:
        from pocketgraph.exporting.devices.picture import as_svg

        write_atomically(picture, as_svg(found, os.path.basename(os.path.normpath(model))).encode())
        echo(f"written: {picture}", err=as_json)
    verdicts = [one.fits for one in found.devices]
    if devices or device_file:
        return int("no" in verdicts)
    return int((budget is not None or memory is not None) and set(verdicts) <= {"no", ""})


def _listed() -> Iterator[str]:
    from pocketgraph.exporting.devices.device_table import devices

    wide = max(len(device.name) for device in devices())
    for device in devices():
        yield f"{device.name:<{wide}}  {device.year}  {device.title}. {device.source}"


def _lines(found: DeviceFit, name: str) -> Iterator[str]:
    from pocketgraph.exporting.devices.device_table import PRECISIONS
    from pocketgraph.inspect.value_text import human_readable
    from pocketgraph.pages.quantities import bytes_text

    plan = found.memory[found.precision]
    is_unknown = not found.flops.total and found.flops.uncounted
    yield f"{name}: {'an unknown number of' if is_unknown else human_readable(found.flops.total)} operations a run"
    for precision, sizes in found.memory.items():
        yield (
            f"  {PRECISIONS[precision]:<7} {bytes_text(sizes.weights)} of weights, {bytes_text(sizes.arena)} of "
            "tensors at the fullest moment"
        )
    if plan.largest:
        largest = ", ".join(f"'{tensor}' {bytes_text(size)}" for tensor, size in plan.largest[:2])
        yield f"  the largest then: {largest}"
    if found.times is not None:
        whole = sum(found.times.families.values())
        shares = ", ".join(f"{f} {t / whole:.0%}" for f, t in found.times.families.items() if t > 0.005 * whole)
        yield f"  here {whole:.3g} ms a run on one thread: {shares}"
    yield ""
    yield from _table(found)
    yield ""
    yield from _advice(found)
    yield from _validation(found)


def _table(found: DeviceFit) -> Iterator[str]:
    from pocketgraph.exporting.devices.device_table import PRECISIONS

    wide = max(len(one.device.name) for one in found.devices)
    columns = [p for p in PRECISIONS if any(p in one.latency for one in found.devices)]
    heads = "".join(f"{PRECISIONS[p] + ' ms':>26}{'a second':>11}" for p in columns)
    yield f"{'device':<{wide}}{heads}  fits"
    for one in found.devices:
        cells = "".join(_cell(one.latency.get(p)) for p in columns)
        reasons = f": {'; '.join(one.reasons)}" if one.reasons else ""
        yield f"{one.device.name:<{wide}}{cells}  {one.fits or '-'}{reasons}"


def _cell(latency: Latency | None) -> str:
    if latency is None:
        return f"{'-':>26}{'-':>11}"
    span = f"{number(latency.milliseconds)} ({number(latency.low)}-{number(latency.high)})"
    return f"{span:>26}{number(1000 / latency.milliseconds):>11}"


def number(value: float) -> str:
    """Three digits, without a power of ten.

    >>> [number(x) for x in (0.01234, 3.456, 1234.5)]
    ['0.0123', '3.46', '1,234']
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _advice(found: DeviceFit) -> Iterator[str]:
    if not found.advice:
        return
    from pocketgraph.pages.quantities import bytes_text

    yield "What would help:"
    for one in found.advice:
        times = ", ".join(f"{device} {number(ms)} ms" for device, ms in list(one.milliseconds.items())[:MOST_TIMES])
        times += ", …" * (len(one.milliseconds) > MOST_TIMES)
        yield f"  {one.name}: {one.text}"
        yield f"    {bytes_text(one.memory)} of weights and tensors{'; ' + times if times else ''}"
    layers = heaviest(found)
    if layers:
        yield "  layers to look at, by their share of the time here:"
        for layer, op, share in layers:
            yield f"    {share:>5.1%}  {op}  '{layer}'"
    yield ""


def heaviest(found: DeviceFit) -> list[tuple[str, str, float]]:
    """The nodes that take most time here, with op and share."""
    if found.times is None:
        return []
    whole = sum(found.times.families.values())
    nodes = sorted(found.times.nodes.items(), key=lambda item: -item[1][1])[:MOST_LAYERS]
    return [(name, op, milliseconds / whole) for name, (op, milliseconds) in nodes if milliseconds > 0]


def _validation(found: DeviceFit) -> Iterator[str]:
    yield "Times are estimates. How far off they are, with each model of the published times left out in turn:"
    for title, precision, is_micro in _classes(found):
        from pocketgraph.exporting.devices.latency_model import class_model

        known = class_model(is_micro, precision)
        yield (
            f"  {title}: {len(known.left_out)} times, half of them within a factor of {known.median_factor:.2f}, "
            f"nine in ten of {known.error:.2f} (the range in brackets)"
        )
    thumb = [one.device.name for one in found.devices if one.device.gflops is not None and one.device.own is None]
    if thumb:
        yield f"  {', '.join(thumb)}: operations a second alone, the best to hope for"


def _classes(found: DeviceFit) -> list[tuple[str, str, bool]]:
    from pocketgraph.exporting.devices.device_table import PRECISIONS

    classes = {
        (device.kind == "microcontroller", precision)
        for device, precision in ((one.device, p) for one in found.devices for p in one.latency)
        if device.gflops is None or device.own is not None
    }
    words = {False: "phones, boards, browsers", True: "microcontrollers"}
    return [(f"{words[micro]}, {PRECISIONS[precision]}", precision, micro) for micro, precision in sorted(classes)]


def as_dict(found: DeviceFit) -> dict[str, Any]:
    """Everything for programs; times in milliseconds, memory in bytes."""
    from pocketgraph.exporting.devices.latency_model import class_model

    return {
        "flops": found.flops.total,
        "not_counted": {"ops": found.flops.uncounted, "unknown_shapes": found.flops.unknown},
        "precision": found.precision,
        "memory": {
            precision: {
                "weights": plan.weights, "tensors": plan.arena, "unknown_tensors": plan.unknown,
                "largest": [{"tensor": tensor, "bytes": size} for tensor, size in plan.largest],
            }
            for precision, plan in found.memory.items()
        },
        "here": None if found.times is None else {
            "families": found.times.families,
            "layers": [{"name": n, "op": op, "share": share} for n, op, share in heaviest(found)],
        },
        "budget_ms": found.budget_ms,
        "devices": [_device_dict(one) for one in found.devices],
        "advice": [
            {"name": a.name, "text": a.text, "milliseconds": dict(a.milliseconds), "memory": a.memory}
            for a in found.advice
        ],
        "validation": [
            {
                "class": title, "precision": precision, "times": len(known.left_out),
                "median_factor": known.median_factor, "nine_in_ten_within": known.error,
                "pairs": [
                    {"device": o.published.device, "model": o.published.model,
                     "published": o.published.milliseconds, "estimate": o.estimate}
                    for o in known.left_out
                ],
            }
            for title, precision, is_micro in _classes(found)
            for known in [class_model(is_micro, precision)]
        ],
        "notes": found.notes,
    }  # fmt: skip


def _device_dict(one: DeviceEstimate) -> dict[str, Any]:
    device = one.device
    return {
        "name": device.name, "title": device.title, "kind": device.kind, "year": device.year, "source": device.source,
        "memory_bytes": device.memory, "flash_bytes": device.flash,
        "estimates": {
            precision: {
                "milliseconds": latency.milliseconds, "low": latency.low, "high": latency.high,
                "frames_a_second": 1000 / latency.milliseconds, "memory": one.memory[precision],
            }
            for precision, latency in one.latency.items()
        },
        "fits": one.fits, "reasons": one.reasons,
    }  # fmt: skip
