"""Shape rules of branches, loops and assertions."""
