"""``pocketgraph identify``: one line a file or directory."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli._output import echo
from pocketgraph.errors import PocketgraphError

if TYPE_CHECKING:
    from pocketgraph.formats.facts import FileFacts, GraphFacts


@click.command("identify")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON, a list with one entry a path.")
def command(paths: tuple[str, ...], as_json: bool) -> None:
    """Say what each PATH is, who wrote it, what is in it, and what to type next.

    Leaves with 1 when one of them does not exist, is damaged, or lacks a file.

    \b
      pocketgraph identify model.pb training_dir/*
    """
    from pocketgraph.formats import Kind
    from pocketgraph.formats.facts import facts

    found = [facts(path) for path in paths]
    if as_json:
        echo(json.dumps([as_dict(one) for one in found], indent=2))
    else:
        for one in found:
            echo(line(one))
    if any(one.damage or one.identity.kind is Kind.MISSING for one in found):
        raise click.exceptions.Exit(1)


def as_dict(facts: FileFacts) -> dict[str, Any]:
    """The facts for programs."""
    return {
        "path": facts.identity.path,
        "kind": facts.identity.kind.name.lower(),
        "description": facts.identity.description,
        "bytes": facts.bytes,
        "graphs": [dataclasses.asdict(graph) for graph in facts.graphs],
        "tensors": facts.tensors,
        "tensor_bytes": facts.tensor_bytes,
        "prefix": facts.prefix,
        "damage": facts.damage,
        "next": next_step(facts),
        **({"litert": litert_facts(facts)} if facts.model is not None else {}),
    }


def litert_facts(facts: FileFacts) -> dict[str, Any]:
    """The signatures and metadata of a LiteRT file for programs."""
    assert facts.model is not None
    sides = {
        key: {
            side: {name: dataclasses.asdict(fact) for name, fact in found.items()}
            for side, found in zip(("inputs", "outputs"), pair, strict=True)
        }
        for key, pair in facts.model.signatures.items()
    }
    runtime = facts.model.metadata.get("min_runtime_version", b"").rstrip(b"\0").decode("ascii", "replace")
    about = dataclasses.asdict(facts.metadata) if facts.metadata is not None else None
    return {"signatures": sides, "min_runtime_version": runtime, "metadata": about}


def litert_text(facts: FileFacts) -> str:
    """The same for people."""
    from pocketgraph.formats.tflite import TensorFacts

    def shown(name: str, fact: TensorFacts) -> str:
        sizes = ",".join("?" if size is None else str(size) for size in fact.shape)
        codes = f" of scale {fact.scale:g}, zero point {fact.zero_point}" if fact.scale else ""
        return f"{name} {fact.dtype}[{sizes}]{codes}"

    assert facts.model is not None
    parts = []
    for key, pair in facts.model.signatures.items():
        inputs, outputs = (", ".join(shown(name, fact) for name, fact in side.items()) for side in pair)
        parts.append(f"{key if facts.model.has_signatures else 'no signature'}: {inputs or 'nothing'} -> {outputs}")
    about = facts.metadata
    if about is not None:
        told = [f"metadata of '{about.name}'" if about.name else "metadata"]
        if about.mean:
            told.append(f"mean {','.join(f'{m:g}' for m in about.mean)} std {','.join(f'{s:g}' for s in about.std)}")
        told += [f"{len(about.labels)} labels"] if about.labels else []
        told += [f"by {about.author}"] if about.author else []
        parts.append(", ".join(told))
    return "; ".join(parts)


def line(facts: FileFacts) -> str:
    """One line for people."""
    from pocketgraph.formats import Kind
    from pocketgraph.inspect.numbers import bytes_text

    identity = facts.identity
    parts = [identity.description]
    if identity.kind is not Kind.MISSING:
        parts.append(bytes_text(facts.bytes))
    if facts.tensors is not None:
        parts.append(f"{facts.tensors} tensors of {bytes_text(facts.tensor_bytes)}")
    text = ", ".join(parts)
    for graph in facts.graphs:
        tags = f"[{','.join(graph.tags)}] " if graph.tags else ""
        text += f"; {tags}{', '.join(graph_parts(graph))}"
    if facts.model is not None:
        text += f"; {litert_text(facts)}"
    if facts.damage:
        text += f"; cannot be read: {facts.damage}"
    elif identity.next:
        text += f"; next: {next_step(facts)}"
    return f"{identity.path}: {text}"


def next_step(facts: FileFacts) -> str:
    """What to type next.

    A graph that needs no freezing is looked at; the graph beside a checkpoint need not be named, one of several entry
    points without a default has to be.
    """
    if facts.graphs and not any(graph.variables for graph in facts.graphs):
        return f"pocketgraph summarize {shlex.quote(facts.identity.path)}"
    if "<its graph>" in facts.identity.next:
        from pocketgraph.freezing.training_dir import find

        with contextlib.suppress(PocketgraphError):
            find(facts.identity.path)
            return f"pocketgraph freeze_graph {shlex.quote(facts.identity.path)} -o frozen.pb"
    signatures = facts.graphs[0].signatures if facts.graphs else ()
    if len(signatures) > 1 and "serving_default" not in signatures and "input_saved_model_dir" in facts.identity.next:
        return f"{facts.identity.next} --signature={signatures[0]}"
    return facts.identity.next


def graph_parts(graph: GraphFacts) -> list[str]:
    """What there is to say of one graph, leaving out what it has none of."""
    from pocketgraph.inspect.numbers import bytes_text

    wrote = graph.version if graph.version[:1].islower() else f"TensorFlow {graph.version}" if graph.version else ""
    if not wrote and graph.producer:
        wrote = f"GraphDef version {graph.producer}"
    return [
        *([wrote] if wrote else []),
        f"{graph.nodes} nodes",
        *([f"{graph.functions} function{'s' * (graph.functions != 1)}"] if graph.functions else []),
        *([f"{graph.variables} variable{'s' * (graph.variables != 1)}"] if graph.variables else []),
        *(
            [f"{graph.constants} constant{'s' * (graph.constants != 1)} of {bytes_text(graph.const_bytes)}"]
            if graph.constants
            else []
        ),
        *([f"signatures {', '.join(graph.signatures)}"] if graph.signatures else []),
    ]
