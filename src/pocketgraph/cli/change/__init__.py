"""Commands that write a graph in another form, or with other nodes."""
