"""Channels: equalized or replicated, so that one scale suits all of a tensor."""
