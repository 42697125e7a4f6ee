"""Looks at models: what a graph holds, what it costs and how long it takes, what rules did to it."""

from pocketgraph.inspect.summarize import EndpointSummary, Summary, summarize

__all__ = ["EndpointSummary", "Summary", "summarize"]
