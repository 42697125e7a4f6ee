"""What is decided before a graph runs: its simplest form for the values known, and which engine takes which part."""
