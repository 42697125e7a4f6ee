"""``python -m pocketgraph`` and ``pocketgraph``: the command line."""

import sys


def main() -> None:
    """As ``cli.main.main``, also where Ctrl-C comes while Python is still importing that."""
    try:
        from pocketgraph.cli.main import main as command_line

        command_line()
    except KeyboardInterrupt as stop:
        print("error: stopped", file=sys.stderr)
        sys.exit(128 + getattr(stop, "number", 2))


if __name__ == "__main__":
    main()
