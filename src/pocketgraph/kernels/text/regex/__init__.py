"""Regular expressions with RE2's syntax and meaning, in time linear in the text."""
