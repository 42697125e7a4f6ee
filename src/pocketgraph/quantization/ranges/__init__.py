"""Range selection: which of the values seen get codes of their own, and how far beyond them codes reach."""
