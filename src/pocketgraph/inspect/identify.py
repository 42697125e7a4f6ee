"""``pocketgraph.identify``: what a file or directory is, who wrote it, what is in it, and what to type next."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import PocketgraphError, path_of, quoted, quoted_path
from pocketgraph.formats import Kind
from pocketgraph.formats.content import WITH_GRAPH
from pocketgraph.formats.detect import model_at
from pocketgraph.formats.model_file_facts import GRAPHS, FileFacts, GraphFacts, facts
from pocketgraph.formats.tflite import DeclaredTensor
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.pages.quantities import bytes_text, counted

if TYPE_CHECKING:
    from pocketgraph.freezing.ready_models import Freezing


@dataclass(frozen=True)
class IdentifiedFile(FileFacts):
    """What lies at a path; attributes as for FileFacts."""

    @property
    def path(self) -> str:
        """The path, as given."""
        return self.identity.path

    @property
    def kind(self) -> Kind:
        """What it is."""
        return self.identity.kind

    @property
    def is_whole(self) -> bool:
        """Whether it is there and can be read."""
        return not self.damage and self.kind is not Kind.MISSING

    @property
    def next(self) -> str:
        """What to type next.

        A graph that needs no freezing is looked at, one with a checkpoint beside it is frozen, and repaired where
        training left something behind; the graph beside a checkpoint need not be named, one of several entry points
        without a default has to be.
        """
        if self.graphs and not any(graph.variables for graph in self.graphs):
            return f"pocketgraph summarize {quoted_path(self.path)}"
        is_directory = self.kind is Kind.CHECKPOINT_DIRECTORY
        is_saved_model = self.kind is Kind.SAVED_MODEL and not self.damage
        is_graph = self.kind in GRAPHS and not self.damage
        if is_directory or is_saved_model or is_graph or "input_checkpoint=" in self.identity.next:
            from pocketgraph.freezing.ready_models import ready
            from pocketgraph.freezing.training_dir import OF_OBJECTS, find, is_of_objects

            with contextlib.suppress(PocketgraphError):
                if is_saved_model:
                    return freeze_command(self.path, ready(self.path).freezing, "frozen.pb")
                found = find(self.path)
                if found.checkpoint is None:
                    return self.identity.next
                written = os.stat(found.graph)
                tried = _tried(found.graph, written.st_mtime_ns, written.st_size)
                how = next(filter(None, tried.values()), None)
                if how is None and found.checkpoint not in tried:
                    with contextlib.suppress(PocketgraphError):
                        how = ready(self.path).freezing
                    tried[found.checkpoint] = how
                return freeze_command(self.path, how, "frozen.pb")
            with contextlib.suppress(PocketgraphError):
                if self.prefix and not is_saved_model and is_of_objects(self.prefix):
                    return f"{WITH_GRAPH.format(quoted_path(self.path))}; {OF_OBJECTS}"
            if is_directory:
                return WITH_GRAPH.format(quoted_path(self.path))
        signatures = self.graphs[0].signatures if self.graphs else ()
        unnamed = len(signatures) > 1 and DEFAULT_SIGNATURE not in signatures
        if unnamed and "input_saved_model_dir" in self.identity.next:
            return f"{self.identity.next} --signature={signatures[0]}"
        return self.identity.next

    def as_dict(self) -> dict[str, Any]:
        """The facts for programs."""
        return {
            "path": self.path,
            "kind": self.kind.name.lower(),
            "description": self.identity.description,
            "bytes": self.bytes,
            "graphs": [dataclasses.asdict(graph) for graph in self.graphs],
            "tensors": self.tensors,
            "tensor_bytes": self.tensor_bytes,
            "prefix": self.prefix,
            "damage": self.damage,
            "next": self.next,
            "variables": [{"name": one.name, "dtype": one.dtype, "shape": list(one.shape)} for one in self.variables],
            **({self.kind.name.lower(): self._model_dict()} if self.kind is Kind.ONNX and self.model else {}),
            **({"litert": self._model_dict()} if self.kind is Kind.TFLITE and self.model else {}),
        }

    def variable_lines(self) -> list[str]:
        """The variables of a checkpoint for people, a line each: name, type and shape."""
        return [_tensor_text(one.name, one) for one in self.variables]

    def _model_dict(self) -> dict[str, Any]:
        """The signatures and metadata of a LiteRT or ONNX file for programs."""
        assert self.model is not None
        sides = {
            key: {
                side: {name: dataclasses.asdict(fact) for name, fact in found.items()}
                for side, found in zip(("inputs", "outputs"), pair, strict=True)
            }
            for key, pair in self.model.signatures.items()
        }
        runtime = self.model.metadata.get("min_runtime_version", b"").rstrip(b"\0").decode("ascii", "replace")
        about = dataclasses.asdict(self.metadata) if self.metadata is not None else None
        return {"signatures": sides, "min_runtime_version": runtime, "metadata": about}

    def _model_text(self) -> str:
        """The same for people."""
        assert self.model is not None
        parts = []
        for key, pair in self.model.signatures.items():
            inputs, outputs = (", ".join(_tensor_text(name, fact) for name, fact in side.items()) for side in pair)
            named = "" if self.kind is Kind.ONNX else f"{key if self.model.has_signatures else 'no signature'}: "
            parts.append(f"{named}{inputs or 'nothing'} -> {outputs}")
        about = self.metadata
        if about is not None:
            facts = [f"metadata of '{about.name}'" if about.name else "metadata"]
            if about.mean:
                facts.append(
                    f"mean {','.join(f'{m:g}' for m in about.mean)} std {','.join(f'{s:g}' for s in about.std)}"
                )
            facts += [f"{counted(len(about.labels), 'label')}"] if about.labels else []
            facts += [f"by {about.author}"] if about.author else []
            parts.append(", ".join(facts))
        return "; ".join(parts)

    def __str__(self) -> str:
        """One line for people."""
        parts = [self.identity.description]
        if self.kind is not Kind.MISSING:
            parts.append(bytes_text(self.bytes))
        if self.tensors is not None:
            parts.append(f"{counted(self.tensors, 'tensor')} of {bytes_text(self.tensor_bytes)}")
        text = ", ".join(parts)
        for graph in self.graphs:
            tags = f"[{','.join(graph.tags)}] " if graph.tags else ""
            text += f"; {tags}{', '.join(_graph_parts(graph, self.model is None))}"
        if self.model is not None:
            text += f"; {self._model_text()}"
        if self.damage:
            text += f"; cannot be read: {self.damage}"
        elif self.identity.next:
            text += f"; next: {self.next}"
        return f"{self.path}: {text}"

    def __repr__(self) -> str:
        return f"<{self}>"


def identify(path: str | os.PathLike[str]) -> IdentifiedFile:
    """Says what a file, directory or checkpoint is, who wrote it, what is in it, and what to type next.

    >>> import pocketgraph
    >>> from pocketgraph.graph.text_format import parse
    >>> pocketgraph.save(parse("x = Placeholder(dtype=float)\\ny = Neg(x, T=float)"), "negative.pb")
    >>> found = identify("negative.pb")
    >>> found.kind.name, found.graphs[0].nodes, found.next
    ('GRAPH_DEF', 2, 'pocketgraph summarize negative.pb')

    A damaged or missing file gives what is known nevertheless; see ``is_whole`` and ``damage``.

    Args:
        path: a file, a directory, or the prefix of a checkpoint. Of a directory that is no model and has one inside,
            that one is taken, and ``path`` of what is found is its path.

    Returns:
        What was found, such as kind, bytes, graphs, damage, and what to type next.

    Raises:
        FormatError: it cannot be opened.
    """
    name = path_of(path)
    return IdentifiedFile(**vars(facts(model_at(name) if os.path.isdir(name) else name)))


@functools.lru_cache(maxsize=16)
def _tried(graph: str, modified: int, size: int) -> dict[str, Freezing | None]:
    """How a training of this graph, as it was written, freezes with the checkpoints that were tried, None where it does
    not; of the first that does, the others are taken to freeze alike."""
    return {}


def freeze_command(path: str, how: Freezing | None, out: str) -> str:
    """The call of ``freeze_graph`` that writes what was frozen in memory.

    Args:
        path: of the model.
        how: it was frozen; None where nothing has to be said.
        out: the file to write.
    """
    text = f"pocketgraph freeze_graph {quoted_path(path)} -o {out}"
    if how is None:
        return text
    text += f" --output_node_names={quoted(','.join(how.outputs))}" if how.outputs else ""
    text += f" --signature={quoted(how.signature)}" if how.signature else ""
    return text + " --repair" * how.repair


def _tensor_text(name: str, fact: DeclaredTensor) -> str:
    sizes = ",".join("?" if size is None else str(size) for size in fact.shape)
    codes = f" of scale {fact.scale:g}, zero point {fact.zero_point}" if fact.scale else ""
    return f"{name} {fact.dtype}[{sizes}]{codes}"


def _graph_parts(graph: GraphFacts, with_signatures: bool) -> list[str]:
    """What there is to say of one graph, leaving out what it has none of."""
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
        *([f"signatures {', '.join(graph.signatures)}"] if graph.signatures and with_signatures else []),
    ]
