"""Builds the documentation's site, or runs the blocks of its pages.

python tools/docs_site                          build/docs/index.html
python tools/docs_site run docs/files.md        run a page's blocks, in a new folder; all pages without a name
python tools/docs_site run --write docs/files.md    and put what they print into the page
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))


def main() -> int:
    """Builds or runs."""
    from docs_site import build
    from docs_site.blocks import ROOT, documents

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "run"), nargs="?", default="build")
    parser.add_argument("--write", action="store_true", help="put what blocks print into the pages")
    parser.add_argument("pages", nargs="*", default=[])
    given = parser.parse_intermixed_args()
    if given.what == "build":
        return build.main()
    return sum(run(ROOT / page, given.write) for page in given.pages or documents())


def run(page: pathlib.Path, write: bool) -> int:
    """Runs one page; gives 1 when something is wrong."""
    from docs_site import folder, running

    if page.suffix == ".ipynb":
        return run_notebook(page, write)
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            printed = running.run_page(text, folder.make(pathlib.Path(scratch)))
            if not write:
                running.check(printed)
        except running.BlockError as error:
            print(f"{page}: {error}", file=sys.stderr)
            return 1
    if write:
        page.write_text(running.rewritten(text, printed), "utf-8")
    print(f"{page}: {len(printed)} blocks")
    return 0


def run_notebook(notebook: pathlib.Path, write: bool) -> int:
    """Executes a notebook; gives 1 when it prints something else than it keeps."""
    import nbformat

    from docs_site import notebooks

    with tempfile.TemporaryDirectory() as scratch:
        if write:
            notebooks.write(notebook, pathlib.Path(scratch))
            return 0
        made = notebooks.executed(notebook, pathlib.Path(scratch))
    wrong = notebooks.differences(nbformat.read(notebook, as_version=4), made)
    print("\n".join([f"{notebook}: {len(wrong)} cells differ", *wrong]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
