"""What a graph tells about itself: prints, and the summaries that TensorBoard reads."""
