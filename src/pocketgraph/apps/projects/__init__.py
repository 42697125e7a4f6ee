"""Projects: small apps, complete and of their platform's own kind, around the file that a model was exported to."""

from typing import TYPE_CHECKING

from pocketgraph.lazy_members import lazy_members

if TYPE_CHECKING:
    from pocketgraph.apps.projects.tool import WrittenProject, make_project

__all__ = ["WrittenProject", "make_project"]

__getattr__ = lazy_members(__name__, dict.fromkeys(__all__, "tool"))
