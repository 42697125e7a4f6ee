"""Shape rules of prints and summaries."""
