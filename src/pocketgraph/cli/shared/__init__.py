"""What commands share: options, output, progress, keys, pipes."""
