"""The rules, one a file of the name that a transform string calls it by."""
