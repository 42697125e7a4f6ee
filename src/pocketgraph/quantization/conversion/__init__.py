"""Conversion: a float program rewritten as one of codes, and that one as a GraphDef."""
