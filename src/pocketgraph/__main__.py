"""``python -m pocketgraph``: the command line."""

from pocketgraph.cli.main import main

main()
