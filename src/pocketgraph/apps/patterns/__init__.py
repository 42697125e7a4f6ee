"""Ways to use a model that is smaller than the task: windows, proposals, cascades, spectrograms, neighbours, steps."""
