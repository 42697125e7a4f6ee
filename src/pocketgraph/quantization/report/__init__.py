"""The report: what each layer lost and through what, and what the model gained."""
