"""What stands beside the branches and loops of a graph; the runtime itself runs Switch, Merge and their kin."""
