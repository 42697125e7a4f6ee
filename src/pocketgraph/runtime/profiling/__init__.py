"""Times of single nodes, of one run and of many."""
