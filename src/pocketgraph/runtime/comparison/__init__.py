"""Whether two models give the same, and how far answers are from others', and from the truth."""
