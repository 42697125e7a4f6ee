"""The table of the kinds of projects; to add one is to add a row, its module, and its files."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from pocketgraph.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from pocketgraph.apps.projects.project import Project
    from pocketgraph.graph import Graph


class ProjectKind(NamedTuple):
    """A kind of project.

    Attributes:
        name: what a person calls it; its templates are in the folder of this name.
        summary: what it is, in a line.
        engines: the targets that it can be built on, the first one unless another is asked for.
    """

    name: str
    summary: str
    engines: tuple[str, ...]

    @property
    def write(self) -> Callable[[Project, str], None]:
        """What writes a project into a folder that exists."""
        function: Callable[[Project, str], None] = import_module(f"pocketgraph.apps.projects.{self.name}").write
        return function

    @property
    def wanted_outputs(self) -> Callable[[Graph, str], list[str] | None] | None:
        """What tells the tensors that a project reads for an app, where these are not just the model's outputs."""
        return getattr(import_module(f"pocketgraph.apps.projects.{self.name}"), "wanted_outputs", None)


KINDS = {
    kind.name: kind
    for kind in (
        ProjectKind(
            "android", "Kotlin, Gradle, CameraX and LiteRT; with a class that old apps of TensorFlow take", ("tflite",)
        ),
        ProjectKind("ios", "Swift: camera, simple and benchmark views, on Core ML or LiteRT", ("coreml", "tflite")),
        ProjectKind("pi", "Python on a Raspberry Pi: camera, a service of systemd, a pin that switches", ("tflite",)),
        ProjectKind("web", "a page that runs in the browser by LiteRT.js, offline too: npm builds it", ("tflite",)),
        ProjectKind("linux", "C without dependencies: pictures, a stream of them, or numbers", ("c",)),
    )
}


def kind_of(name: str) -> ProjectKind:
    """The kind of this name.

    Raises:
        UsageError: there is none.
    """
    if name not in KINDS:
        raise UsageError(
            f"there is no kind of project '{name}'", hint=did_you_mean(name, KINDS) or f"there are {', '.join(KINDS)}"
        )
    return KINDS[name]
