"""Executes benchmarks/notebooks: `python -m benchmarks.run_notebooks [NAME ...]`.

They are scripts of cells (`# %%`), so that they are reviewed, linted and formatted as all Python
here, and hold no outputs.  Each is executed in a process of its own from the root of the checkout,
and left with its outputs as build/notebooks/NAME.ipynb and NAME.html.  Exit status 1 where a cell
fails.
"""

import argparse
import os
import sys
import time

import jupytext
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from traitlets.config import Config

from benchmarks import machine

SOURCES = machine.ROOT / "benchmarks" / "notebooks"
RESULTS = machine.ROOT / "build" / "notebooks"
NAMES = sorted(path.stem for path in SOURCES.glob("*.py"))
CELL_S = 600  # of a cell, which hangs then
BY_FILES = Config({"KernelManager": {"transport": "ipc"}})  # and not by ports, which others read


def execute(name):
    """The error of the first cell that fails, or nothing; what ran until then is written."""
    notebook = jupytext.read(SOURCES / f"{name}.py")
    resources = {"metadata": {"path": str(machine.ROOT)}}
    client = NotebookClient(
        notebook, timeout=CELL_S, kernel_name="python3", resources=resources, config=BY_FILES
    )
    try:
        client.execute()
        return None
    except CellExecutionError as error:
        return str(error)
    finally:
        jupytext.write(notebook, RESULTS / f"{name}.ipynb")
        page, _ = HTMLExporter().from_notebook_node(notebook)
        (RESULTS / f"{name}.html").write_text(page)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args(arguments).names or NAMES
    if unknown := sorted(set(names) - set(NAMES)):
        parser.error(f"found {', '.join(unknown)}; notebooks are {', '.join(NAMES)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = str(machine.ROOT)
    failed, total_s = [], 0.0
    for name in names:
        start = time.perf_counter()
        error = execute(name)
        taken_s = time.perf_counter() - start
        total_s += taken_s
        print(f"{name:16} {taken_s:6.1f} s  {'FAILED' if error else 'ok'}", flush=True)
        if error:
            failed.append(name)
            print(error)
    done = len(names) - len(failed)
    print(f"{done} of {len(names)} executed in {total_s:.0f} s; see {RESULTS}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
