"""A model as a library in C99 of only what its graph needs."""
