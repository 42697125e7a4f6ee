"""Look at a model: tables, times, pictures. Each name loads its module when first used."""

from pocketgraph.inspect.summarize import Endpoint, Summary, summarize

__all__ = ["Endpoint", "Summary", "summarize"]
