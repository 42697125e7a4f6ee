"""What ships: the forms of a model tried on data, the verdict, and the page about it."""
