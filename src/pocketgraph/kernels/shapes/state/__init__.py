"""Shape rules of variables, tables, queues and lists."""
