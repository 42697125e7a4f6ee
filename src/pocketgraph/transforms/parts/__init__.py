"""What rules are made of: patterns, arithmetic on weights, passes."""
