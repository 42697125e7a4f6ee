"""How LiteRT's operators become calls of C kernels, by family."""
