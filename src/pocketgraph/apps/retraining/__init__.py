"""A model taught classes of one's own: the last layer anew, on photos in folders."""
