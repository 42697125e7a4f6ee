"""Compares our transforms with the original Graph Transform Tool's, afresh: ``make oracle``.

    make oracle                                               the shared models and the small graphs of the tests
    make oracle MODEL=x.pb INPUTS=image OUTPUTS=softmax       a model of yours
    make oracle MODEL=x.pb … TRANSFORMS='fold_constants; quantize_weights'      one list of transforms, ";" between

The first time it makes an environment with TensorFlow 1.15.5, which needs Python 3.7 and the network, in ``.oracle``.
Nodes must be the same, in the same order (which is free behind merge_duplicate_nodes and quantize_nodes), with the same
constants; where a rule computes them, they may differ by 1e-5.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

PACKAGES = ["tensorflow==1.15.5", "protobuf<3.21", "numpy<1.19"]
RULES = """
add_default_attributes; backport_concatv2; backport_tensor_array_v3; flatten_atrous_conv; fold_batch_norms
fold_constants; fold_old_batch_norms; fuse_resize_pad_and_conv; fuse_resize_and_conv; fuse_pad_and_conv
merge_duplicate_nodes; obfuscate_names; quantize_weights; quantize_weights(minimum_size=16)
quantize_nodes; quantize_nodes(fallback_min=-10, fallback_max=10); quantize_nodes(input_min=0, input_max=1)
round_weights(num_steps=16); sparsify_gather; insert_logging(show_name=true, show_op=true)
remove_control_dependencies; remove_device; remove_attribute(attribute_name=T)
remove_nodes(op=Identity, op=CheckNumerics); remove_nodes(op=Relu, max_inputs=2)
rename_attribute(old_attribute_name=T, new_attribute_name=TT); rename_op(old_op_name=Relu, new_op_name=Relu6)
set_device(device="/cpu:0", if_default=true); sort_by_execution_order; strip_unused_nodes
"""
CHAINS = [
    ["strip_unused_nodes", "fold_constants(ignore_errors=true)", "fold_batch_norms", "fold_old_batch_norms"],
    [
        "add_default_attributes", "strip_unused_nodes", "remove_nodes(op=Identity, op=CheckNumerics)",
        "fold_constants(ignore_errors=true)", "fold_batch_norms", "fold_old_batch_norms", "quantize_weights",
        "quantize_nodes", "strip_unused_nodes", "sort_by_execution_order",
    ],
]  # fmt: skip


def main() -> int:
    arguments = _arguments()
    try:
        python = environment(arguments.environment)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    wanted = [_split(arguments.transforms, ";")] if arguments.transforms else default_transforms()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for record in originals(python, jobs(arguments, wanted, pathlib.Path(folder))):
            verdict = compared(record)
            counts[verdict.partition(":")[0]] += 1
            if verdict.startswith("differs") or arguments.model:
                name = pathlib.Path(record["file"]).name
                print(f"{name}  {'; '.join(record['transforms'])}\n    {verdict}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if counts["differs"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares our transforms with the original tool's.")
    parser.add_argument("--model", default="", help="a GraphDef of yours")
    parser.add_argument("--inputs", default="", help="what will be fed: names with commas between")
    parser.add_argument("--outputs", default="", help="what will be fetched, likewise")
    parser.add_argument("--transforms", default="", help="one list of transforms, ';' between; by default many")
    parser.add_argument("--environment", default=str(ROOT / ".oracle"), help="where TensorFlow 1.15.5 is, or goes")
    return parser.parse_args()


def default_transforms() -> list[list[str]]:
    return [[rule] for rule in _split(RULES.replace("\n", ";"), ";")] + CHAINS


def _split(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def environment(folder: str) -> pathlib.Path:
    """The Python that has TensorFlow 1.15.5, made now where it is not.

    Raises:
        OSError: there is no Python 3.7, or the packages cannot be had; the message says what to do.
    """
    python = pathlib.Path(folder) / "bin" / "python"
    if python.exists() and not subprocess.run([python, "-c", "import tensorflow"], capture_output=True).returncode:
        return python
    base = _python37()
    print(f"making an environment with {PACKAGES[0]} in {folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    for command in ([base, "-m", "venv", folder], [str(python), "-m", "pip", "install", "-q", *PACKAGES]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            shutil.rmtree(folder, ignore_errors=True)
            raise OSError(f"cannot install {PACKAGES[0]} ({last}); it needs the network and a 64-bit x86 processor")
    return python


def _python37() -> str:
    names = [os.environ.get("PYTHON37", ""), shutil.which("python3.7") or ""]
    names += map(str, sorted(pathlib.Path.home().glob(".pyenv/versions/3.7.*/bin/python")))
    for name in names:
        if (
            name
            and not subprocess.run(
                [name, "-c", "import sys, venv; sys.exit(sys.version_info[:2] != (3, 7))"], capture_output=True
            ).returncode
        ):
            return name
    raise OSError("TensorFlow 1.15 needs Python 3.7, and there is none; install it (pyenv install 3.7) or set PYTHON37")


def jobs(arguments: argparse.Namespace, wanted: list[list[str]], folder: pathlib.Path) -> Iterator[dict[str, Any]]:
    """What to run: the given model, or the shared models and the small graphs (written to ``folder``)."""
    from pocketgraph import formats
    from pocketgraph.graph import node_name

    if arguments.model:
        graph = formats.load(arguments.model)
        fed = _split(arguments.inputs, ",") or list(graph.inputs)
        fetched = _split(arguments.outputs, ",") or list(graph.outputs)
        models: Iterable[tuple[str, list[str], list[str]]] = [
            (str(pathlib.Path(arguments.model).resolve()), fed, fetched)
        ]
    else:
        models = [*_small_graphs(folder), *_shared_models()]
    for path, inputs, outputs in models:
        for transforms in wanted:
            fed, fetched = [node_name(name) for name in inputs], [node_name(name) for name in outputs]
            yield {"file": path, "inputs": fed, "outputs": fetched, "transforms": transforms}


def _small_graphs(folder: pathlib.Path) -> Iterator[tuple[str, list[str], list[str]]]:
    from pocketgraph import formats
    from pocketgraph.graph.text_format import parse

    for path in sorted((ROOT / "tests" / "transforms" / "original").glob("*.graph")):
        graph = parse(path.read_text())
        formats.save(graph, folder / f"{path.stem}.pb")
        fed = [node.name for node in graph if node.op == "Placeholder"]
        fetched = [node.name for node in graph if node.name not in graph.consumers and node.op != "Const"]
        yield str(folder / f"{path.stem}.pb"), fed, fetched


def _shared_models() -> Iterator[tuple[str, list[str], list[str]]]:
    import oracle_compare
    from support import model_dir, model_info

    for name in oracle_compare.models():
        info = model_info(name)
        yield str(model_dir(name) / info["file"]), [*(info.get("inputs") or ())], [*(info.get("outputs") or ())]


def originals(python: pathlib.Path, found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The jobs with what the original tool made of them."""
    script = ROOT / "tools" / "run_original.py"
    with subprocess.Popen(
        [python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for job in found:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            yield json.loads(process.stdout.readline())
        process.stdin.close()


def compared(record: dict[str, Any]) -> str:
    """``equal``, ``differs: …``, or ``aborted`` where the original did and nothing can be compared."""
    from oracle_compare import first_difference
    from pocketgraph import formats
    from pocketgraph.errors import PocketgraphError
    from pocketgraph.transforms import transform

    error = ""
    try:
        graph = transform(
            formats.load(record["file"]), record["transforms"], record["inputs"], record["outputs"], compat="original"
        )
    except PocketgraphError as problem:
        error = str(problem)
    if record["ok"]:
        difference = f"ours fails, {error}" if error else first_difference(graph, record)
        return f"differs: {difference}" if difference else "equal"
    if record["error"] == "the original tool aborted":
        return f"aborted there; ours {f'fails, {error}' if error else 'does not'}".replace(";", ":", 1)
    return "equal" if error else f"differs: the original fails, {record['error'].splitlines()[0]}"


if __name__ == "__main__":
    sys.exit(main())
