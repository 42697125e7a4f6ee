"""Runs one program on one model and tells its times: a script of its own, for whichever Python has the program.

``python timed_program_worker.py PROGRAM`` reads a job as JSON and prints one line of JSON: times, or the problem.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Job = dict[str, Any]
Runner = tuple[Callable[[], list[Any]], str]  # runs once; the program's version


class _MissingError(Exception):
    """The program is not installed, or cannot run this model."""


def imported(module: str, hint: str) -> Any:
    """The module.

    Raises:
        _MissingError: it is not installed; the message is the hint.
    """
    try:
        return import_module(module)
    except ImportError:
        raise _MissingError(hint) from None


def reference(job: Job, feeds: Job) -> Runner:
    """Our reference engine."""
    return ours(job, feeds, "reference")


def litert(job: Job, feeds: Job) -> Runner:
    """Our session with LiteRT alone."""
    return ours(job, feeds, "litert")


def auto(job: Job, feeds: Job) -> Runner:
    """Our session as it is by default."""
    return ours(job, feeds, None)


def ours(job: Job, feeds: Job, engine: str | None) -> Runner:
    """A session, and our version."""
    pocketgraph = imported("pocketgraph", "pocketgraph is not installed")

    session = pocketgraph.Session(job["model"], threads=job["threads"], engine=engine, without=["tiered_compilation"])
    outputs = list(job["outputs"])
    return lambda: session.run(outputs, feeds), pocketgraph.__version__


def tensorflow(job: Job, feeds: Job) -> Runner:
    """A session of TensorFlow 1 or 2, called through a callable where there is one."""
    tf = imported("tensorflow", "TensorFlow is not installed; pip install tensorflow, or --compare_python=PYTHON")
    tf1 = tf.compat.v1
    graph_def = tf1.GraphDef()
    with open(job["model"], "rb") as file:
        graph_def.ParseFromString(file.read())
    with tf.Graph().as_default() as graph:
        tf1.import_graph_def(graph_def, name="")
    config = tf1.ConfigProto(intra_op_parallelism_threads=job["threads"], inter_op_parallelism_threads=1)
    session = tf1.Session(graph=graph, config=config)
    # A callable is the quickest way that TensorFlow's own Python offers.
    options = tf1.CallableOptions() if hasattr(tf1, "CallableOptions") else None
    named = {with_port(name): value for name, value in feeds.items()}
    outputs = [with_port(name) for name in job["outputs"]]
    if options is None:
        return lambda: session.run(outputs, named), tf.__version__
    options.feed.extend(named)
    options.fetch.extend(outputs)
    call = session._make_callable_from_options(options)
    return lambda: call(*named.values()), tf.__version__


def onnxruntime(job: Job, feeds: Job) -> Runner:
    """ONNX Runtime on the .onnx file of the job, or on one that tf2onnx makes now."""
    ort = imported("onnxruntime", "ONNX Runtime is not installed; pip install onnxruntime tf2onnx")
    model = job["onnx"] or converted_to_onnx(job)
    options = ort.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    named = {matching(name, names): value for name, value in feeds.items()}
    given = [item.name for item in session.get_outputs()]
    outputs = [matching(name, given) for name in job["outputs"]]
    return lambda: session.run(outputs, named), ort.__version__


def converted_to_onnx(job: Job) -> str:
    """The path of the model in ONNX's form, written into the job's folder.

    Raises:
        _MissingError: tf2onnx or TensorFlow is not installed.
    """
    hint = "no .onnx file lies beside the model, and tf2onnx with TensorFlow is not installed"
    tf2onnx, tf = imported("tf2onnx", hint), imported("tensorflow", hint)
    graph_def = tf.compat.v1.GraphDef()
    with open(job["model"], "rb") as file:
        graph_def.ParseFromString(file.read())
    path = os.path.join(job["folder"], "model.onnx")
    tf2onnx.convert.from_graph_def(
        graph_def,
        input_names=[with_port(n) for n in job["inputs"]],
        output_names=[with_port(n) for n in job["outputs"]],
        output_path=path,
    )
    return path


def openvino(job: Job, feeds: Job) -> Runner:
    """OpenVINO on the frozen graph, tuned for latency, in 32-bit floats."""
    ov = imported("openvino", "OpenVINO is not installed; pip install openvino")
    core = ov.Core()
    model = core.read_model(job["model"])
    model.reshape({matching_port(name, model.inputs): list(value.shape) for name, value in feeds.items()})
    hints = {"INFERENCE_NUM_THREADS": job["threads"], "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(model, "CPU", hints)
    request = compiled.create_infer_request()
    named = {matching_port(name, compiled.inputs): value for name, value in feeds.items()}
    outputs = [matching_port(name, compiled.outputs) for name in job["outputs"]]

    def once() -> list[Any]:
        found = request.infer(named)
        return [found[output] for output in outputs]

    return once, ov.__version__


def with_port(name: str) -> str:
    """The tensor name with its port, 0 when none is written."""
    node, _, port = name.rpartition(":")
    return name if node and port.isdigit() else name + ":0"


def matching(name: str, names: Any) -> str:
    """The program's own spelling of a tensor."""
    for spelling in (name, with_port(name), with_port(name).rpartition(":")[0]):
        if spelling in names:
            return spelling
    raise _MissingError(f"it has no tensor '{name}', only {', '.join(sorted(names)[:5])}")


def matching_port(name: str, ports: Any) -> Any:
    """OpenVINO's port of a tensor name; the only port when no name fits."""
    spellings = {spelling: port for port in ports for spelling in port.get_names()}
    spellings.update({port.get_node().get_friendly_name(): port for port in ports})
    try:
        return spellings[matching(name, spellings)]
    except _MissingError:
        if len(ports) == 1:
            return ports[0]
        raise


def peak_bytes() -> int | None:
    """The most bytes of memory that this process has had in use; None where nobody tells."""
    try:  # what getrusage tells includes the parent's memory at the fork
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def as_texts(array: Any) -> Any:
    """An array as .npz files hold it without pickling: bytes as text of their hexadecimal digits."""
    if array.dtype.kind != "O":
        return array
    digits = [(item.encode() if isinstance(item, str) else bytes(item)).hex() for item in array.ravel().tolist()]
    return np.array(digits, np.str_).reshape(array.shape)


def from_texts(array: Any) -> Any:
    """What ``as_texts`` was given."""
    if array.dtype.kind != "U":
        return array
    found = np.empty(array.size, object)
    found[:] = [bytes.fromhex(digits) for digits in array.ravel().tolist()]
    return found.reshape(array.shape)


def main() -> Job:
    """Reads the job from standard input, times the program named on the command line, and gives the figures for
    JSON.
    """
    job = json.load(sys.stdin)
    name = sys.argv[1]
    with np.load(os.path.join(job["folder"], "feeds.npz")) as data:
        feeds = {tensor: from_texts(data[f"feed_{index}"]) for index, tensor in enumerate(job["inputs"])}
    clock = time.perf_counter
    start = clock()
    once, version = PROGRAMS[name](job, feeds)
    loaded = clock()
    results = once()
    first = clock()
    np.savez(os.path.join(job["folder"], name), *[as_texts(np.asarray(result)) for result in results])
    times: list[float] = []
    began = clock()
    while len(times) < job["runs"] and (not times or clock() - began < job["seconds"]):
        before = clock()
        once()
        times.append((clock() - before) * 1e6)
    return {
        "version": str(version), "load_us": (loaded - start) * 1e6, "first_us": (first - loaded) * 1e6,
        "times_us": times, "peak_bytes": peak_bytes(),
    }  # fmt: skip


PROGRAMS = {
    "reference": reference, "litert": litert, "auto": auto, "tensorflow": tensorflow, "onnxruntime": onnxruntime,
    "openvino": openvino,
}  # fmt: skip


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    vars(sys)["modules"].setdefault("openvino_telemetry", None)  # imported by nobody
    try:
        answer = main()
    except _MissingError as error:
        answer = {"problem": str(error)}
    except Exception as error:  # whatever the program raises is its answer
        answer = {"problem": f"{type(error).__name__}: {' '.join(str(error).split())}"}
    print(json.dumps(answer))
