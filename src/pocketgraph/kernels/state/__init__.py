"""What lives beyond a node: variables, tables, queues, lists, files."""
