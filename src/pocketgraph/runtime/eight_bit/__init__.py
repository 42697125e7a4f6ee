"""Eight-bit operations of the original tools, rewritten for the fast engine: exactly, or as fast as it can."""
