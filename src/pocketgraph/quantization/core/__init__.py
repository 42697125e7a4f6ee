"""What the steps share: ranges, operators' rules, weights, runs of programs, options and the state."""
