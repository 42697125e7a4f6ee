"""Commands that say what a model is and how it runs."""
