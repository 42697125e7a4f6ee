"""Feeds every reader with damaged files, both engines with hostile graphs, and sessions and writers with bad luck."""
