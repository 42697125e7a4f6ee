"""Sentences that the README of every kind has: what the model takes and gives."""

from __future__ import annotations

from pocketgraph.apps.projects.project import Project
from pocketgraph.exporting.model import Port


def about(project: Project) -> str:
    """What goes into the model and what comes out, in a few lines."""
    lines = [f"- in: {_said(port)}" for port in project.inputs]
    if project.picture is not None:
        mean, std = (sorted(set(part)) for part in (project.picture.mean, project.picture.std))
        texts = [" / ".join(f"{number:g}" for number in part) for part in (mean, std)]
        lines[0] += f", a picture: (value from 0 to 255 - {texts[0]}) / {texts[1]}"
    lines += [f"- out: {_said(port)}" for port in project.outputs]
    if project.gives_scores:
        lines[len(project.inputs)] += ", a score for each class"
    return "\n".join(lines)


def _said(port: Port) -> str:
    shape = ", ".join(map(str, port.sizes or ()))
    return f"`{port.name}` {port.dtype.numpy.name} [{shape}]"


def front(project: Project) -> str:
    """A chapter on what is computed in front of the model; "" where nothing is."""
    return f"\n## In front of the model\n\n{project.front}\n" if project.front else ""
