"""OpenVINO as an engine for parts of floats (extra ``openvino``): from the ONNX form of their graph where there is one.

The .tflite file of a part is rewritten for LiteRT; OpenVINO takes up to a fifth longer for that than for the graph.
Wide convolutions of that are computed in tiles of OpenVINO's own (tiled_convolutions.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from pocketgraph.errors import MissingExtraError, PocketgraphError, RunError
from pocketgraph.exporting.onnx.fed_numbers import (
    MOST_FED,
    CheckedRunner,
    has_finite_squares,
    is_beyond_float32,
    is_wide,
)
from pocketgraph.exporting.onnx.onnxruntime_engine import onnx_form
from pocketgraph.exporting.onnx.tiled_convolutions import PASS
from pocketgraph.graph import DType, Node, parse_ref
from pocketgraph.graph.dtype import BOOL
from pocketgraph.graph.op_traits import QUOTIENTS, ops_with
from pocketgraph.litert.constant import Array
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, OperationTime
from pocketgraph.runtime.part_engines.telemetry import without_telemetry

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY", "PERFORMANCE_HINT": "LATENCY"}
"""Products and sums in float32, as everybody else computes them; by itself it may take bfloat16."""
UNPINNED = {"ENABLE_CPU_PINNING": False}
"""Threads go where a processor is idle: pinned, those of several processes share the first one, at half the speed."""
PROFILED_RUNS = 5
CARRIES_QUOTIENTS = ops_with("elementwise", "passes", "view", "moves")
JUMPS = ops_with("discontinuous", "order") | {"Equal", "NotEqual"}
DIVISIONS = ("Div", "RealDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod", "DivNoNan")
"""Not a trait: what OpenVINO divides in float32 also where the numbers are whole."""
SMALL = 16  # a whole number by which a product of what is fed stays within 2^24
GROWING = frozenset((
    "BatchMatMul", "BatchMatMulV2", "Cumprod", "Cumsum", "LeftShift", "MatMul", "Mean", "Mul", "Pow", "Prod",
    "SegmentProd", "SegmentSum", "Square", "SquaredDifference", "Sum", "UnsortedSegmentMax", "UnsortedSegmentMin",
    "UnsortedSegmentProd", "UnsortedSegmentSum",
))  # fmt: skip
"""Not a trait: what makes whole numbers beyond 2^24 of such as OpenVINO is fed, or of nothing (empty segments)."""
UNCHECKED = {
    "ScatterNd": 0,
    **dict.fromkeys(("GatherNd", "ReverseSequence", "SegmentSum", "TensorScatterAdd", "TensorScatterMax"), 1),
    **dict.fromkeys(("TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate", "UnsortedSegmentSum"), 1),
}
"""Which operand has the indices. Not a trait: where one lies outside, OpenVINO leaves its memory."""
SCATTERS = "ScatterNDUpdate"  # what OpenVINO makes of SCATTER_ND


class OpenVinoRunner(CheckedRunner):
    """A compiled model of OpenVINO's processor plugin.

    Args:
        source: the path of a .tflite model, or the content of an ONNX model.
        threads: how many to compute with.
        part: what is wanted.
        names: what an ONNX model calls the inputs of the part's graph; OpenVINO drops those that nothing reads.
        options: of OpenVINO, besides.

    Raises:
        RunError: OpenVINO does not take the model.
    """

    def __init__(
        self, source: str | bytes, threads: int, part: OfferedPart, names: Sequence[str] = (), **options: Any
    ) -> None:
        super().__init__(part)
        try:
            model = _core().read_model(source)
            if isinstance(source, str) and any(op.get_type_name() == SCATTERS for op in model.get_ops()):
                raise RunError("OpenVINO overwrites where SCATTER_ND of a .tflite file adds up")
            settings = {**EXACT, **UNPINNED, "INFERENCE_NUM_THREADS": threads, **options}
            compiled = _core().compile_model(model, "CPU", settings)
            self.request: Any = compiled.create_infer_request()
        except RuntimeError as error:
            said = str(error).strip().splitlines() or [""]
            raise RunError(f"OpenVINO does not take the part: {' '.join(said[-1].split())[:200]}") from error
        self.nodes = {op.get_friendly_name(): _tensor_name(op) for op in model.get_ops()}
        types = [port.get_element_type().to_dtype() for port in compiled.inputs]
        ports = {name: place for place, port in enumerate(compiled.inputs) for name in port.get_names()}
        taken = [ports.get(names[place]) for place in part.entry.about["fed"]] if names else range(len(types))
        self._takes = [(place, port, types[port]) for place, port in enumerate(taken) if port is not None]
        if len(self._takes) != len(types):
            raise RunError("OpenVINO takes inputs by other names than they were given")
        self._outputs = part.outputs
        self._held: list[Array] = []  # what the request reads, which does not keep it

    def refused(self, inputs: Sequence[Array]) -> str:
        if any(map(is_beyond_float32, inputs)):
            return f"OpenVINO computes whole numbers beyond {MOST_FED} in float32"
        if not all(map(has_finite_squares, inputs)):
            return "OpenVINO's rectifiers, bounds and reductions pass over NaN and what overflows"
        return super().refused(inputs)

    def computed(self, inputs: Sequence[Array]) -> list[Array]:
        # ``request.infer(inputs)`` does the same in Python, 60 µs slower.
        request, tensor_of = self.request, _tensor_class()
        self._held = [inputs[place].astype(dtype, copy=False) for place, _, dtype in self._takes]
        for (_, port, _), array in zip(self._takes, self._held, strict=True):
            is_shared = array.flags.c_contiguous and array.flags.writeable
            request.set_input_tensor(port, tensor_of(array, shared_memory=is_shared))
        request.infer(share_outputs=True)
        return [
            np.array(request.get_output_tensor(place).data, wanted.dtype).reshape(wanted.shape)
            for place, wanted in enumerate(self._outputs)
        ]

    def close(self) -> None:
        self.request, self._held = None, []


class OpenVinoEngine:
    """OpenVINO on processors."""

    name = "openvino"

    def version(self) -> str:
        if find_spec("openvino") is None:
            raise MissingExtraError(
                "the engine 'openvino' is not installed", hint="pip install 'pocketgraph[openvino]'"
            )
        from importlib.metadata import version

        return version("openvino") + (" from ONNX" if _has_onnx() else "")  # another program, other certificates

    def refuses(self, part: OfferedPart) -> str:
        if part.is_eight_bit:
            return "it has eight-bit tensors, which OpenVINO computes with otherwise"
        if part.reference is None:
            return "the graph was not read"
        nodes = part.reference.nodes
        inexact = next((why for node in nodes if (why := _inexact(node))), "")
        return inexact or _rounded_quotient(nodes) or _unsafe_numbers(nodes)

    def load(self, part: OfferedPart, threads: int) -> OpenVinoRunner:
        return opened(part, threads)

    def profile(self, part: OfferedPart, threads: int, inputs: Sequence[Array]) -> list[OperationTime] | None:
        runner = opened(part, threads, PERF_COUNT=True)
        best: list[Any] = []
        for _ in range(PROFILED_RUNS):
            runner.run(inputs)
            best = min(best or runner.request.profiling_info, runner.request.profiling_info, key=_whole)
        return [
            OperationTime(
                runner.nodes.get(each.node_name) or each.node_name,
                f"{each.node_type} {each.exec_type}",
                _microseconds(each),
            )
            for each in best
            if _microseconds(each)
        ]


def _inexact(node: Node) -> str:
    """Why OpenVINO does not give an op's numbers; "" where it does."""
    dtype = node.attrs.get("T")
    if node.op == "LRN" and not float(node.attr("bias", 1.0)).is_integer():
        return f"'{node.name}' (LRN) has a bias that is no whole number, which OpenVINO takes for one"
    if node.op == "FloorDiv":
        return f"'{node.name}' (FloorDiv) is made of a quotient that OpenVINO rounds: 41 // 41 is 0"
    if node.op in DIVISIONS and isinstance(dtype, DType) and not dtype.is_floating:
        return f"'{node.name}' ({node.op}) divides whole numbers, which OpenVINO does in float32"
    return ""


def _rounded_quotient(nodes: Sequence[Node]) -> str:
    """Which op jumps at whole quotients, of which OpenVINO's may lie below; "" where none does."""
    quotients: dict[str, str] = {}  # of what, by the names of the nodes that carry it on
    for node in nodes:
        taken = [parse_ref(ref)[0] for ref in node.data_inputs]
        found = next((quotients[name] for name in taken if name in quotients), "")
        target = node.attrs.get("DstT")
        is_whole = node.op == "Cast" and isinstance(target, DType) and not target.is_floating
        if found and (is_whole or node.op in JUMPS):
            return f"'{node.name}' ({node.op}) rounds or compares the quotient '{found}'; OpenVINO's 41 / 41 is below 1"
        if node.op in QUOTIENTS:
            quotients[node.name] = node.name
        elif found and (node.op in CARRIES_QUOTIENTS or node.op == "Cast"):
            quotients[node.name] = found
    return ""


def _unsafe_numbers(nodes: Sequence[Node]) -> str:
    """Which op may make whole numbers that OpenVINO rounds, or indices that it does not check; "" where none does."""
    made_by = {node.name: node for node in nodes}
    for node in nodes:
        dtype, operands = node.attrs.get("T"), [made_by.get(parse_ref(ref)[0]) for ref in node.data_inputs]
        place = 1 if node.op == "GatherV2" and node.attr("batch_dims", 0) else UNCHECKED.get(node.op)
        if place is not None and ((made := operands[place]) is None or made.op != "Const"):
            return f"'{node.name}' ({node.op}) takes indices that are computed, which OpenVINO does not check"
        if not isinstance(dtype, DType) or not is_wide(dtype.numpy):
            continue
        counted = operands[:2] if node.op == "Mul" else operands[:1]
        is_large = "Index" not in node.attrs and any(_largest(each) >= 1 << 24 for each in operands)
        if is_large or (node.op in GROWING and all(_largest(each, SMALL + 1) > SMALL for each in counted)):
            return f"'{node.name}' ({node.op}) may make whole numbers beyond 2^24, which OpenVINO computes in float32"
    return ""


def _largest(node: Node | None, otherwise: int = 0) -> int:
    """The largest magnitude of a constant, or 1 of what was true or false; ``otherwise`` where that is not known."""
    if node is not None and node.op == "Cast" and node.attrs.get("SrcT") is BOOL:
        return 1
    if node is None or node.op != "Const" or not is_wide(node.tensor.dtype.numpy):
        return otherwise
    values = node.tensor.numpy()
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def opened(part: OfferedPart, threads: int, **options: Any) -> OpenVinoRunner:
    """A part in OpenVINO: from its graph, or else from its file.

    Raises:
        RunError: OpenVINO takes neither.
    """
    if _has_onnx() and not part.is_narrow:
        with contextlib.suppress(PocketgraphError):  # ONNX has no operators for it, or OpenVINO does not take them
            content, names = onnx_form(part, tiled_for=0 if PASS in part.without else threads)
            return OpenVinoRunner(content, threads, part, names=names, **options)
    return OpenVinoRunner(part.file, threads, part, **options)


def _has_onnx() -> bool:
    return find_spec("onnx") is not None


def _tensor_name(op: Any) -> str:
    """The tensor of the file that an operation makes, which is named as in the graph; "" where that has no name."""
    names = [name for output in op.outputs() for name in output.get_names()]
    return names[0].partition(":")[0] if names else ""


def _microseconds(event: Any) -> float:
    return float(event.real_time.total_seconds() * 1e6)


def _whole(events: Sequence[Any]) -> float:
    return sum(map(_microseconds, events))


@lru_cache(maxsize=1)
def _core() -> Any:
    """OpenVINO's surroundings, shared by all models of the process."""
    return without_telemetry("openvino").Core()


@lru_cache(maxsize=1)
def _tensor_class() -> Any:
    return without_telemetry("openvino").Tensor


ENGINE = OpenVinoEngine()
