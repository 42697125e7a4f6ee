"""LiteRT files that others wrote: verified before native code sees them, and run in a process of their own."""
