"""The steps of optimizers, and gathered gradients."""
