"""Projects: small apps, complete and of their platform's own kind, around the file that a model was exported to."""

from pocketgraph.apps.projects.tool import WrittenProject, make_project

__all__ = ["WrittenProject", "make_project"]
