"""How LiteRT does each op, by family."""
