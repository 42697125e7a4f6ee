"""What is only there to make the nodes of the original tool: its hashes, names, orders and checks."""
