"""``python -m pocketgraph`` and ``pocketgraph``: the command line."""

import sys


def main() -> None:
    """As ``cli.main.main``, also where Ctrl-C comes while Python is still importing that."""
    try:
        from pocketgraph.cli.main import main as command_line

        command_line()
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
