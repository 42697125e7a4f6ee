"""Mixed precision: what eight bits do to the outputs, and what stays in float."""
