"""What sparsify_gather is made of: the values of tables, their new nodes, and the removal of what fed them."""
