"""docs/notebook.ipynb runs as it stands there, and its figures are those that come out: it is of virtual time.

`python tests/python/test_notebook.py` writes what comes out into it, after a change that is meant.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from support import SOURCE
from test_design import needs_native

NOTEBOOK = SOURCE / "docs" / "notebook.ipynb"
LIMIT_S = 240
OF_WORDS = "words"  # the tag of cells that print sentences, which are others' to change


def executed(folder: Path) -> Any:
    """The notebook after it was run in an empty folder, with the text of its outputs alone."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    kernel = AsyncKernelManager(kernel_name="python3", transport="ipc")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    with contextlib.chdir(folder):  # of both: the sockets between them are named from there
        NotebookClient(notebook, km=kernel, timeout=LIMIT_S, record_timing=False).execute()
    for cell in code_of(notebook):
        for output in cell.outputs:
            output.get("data", {}).pop("text/html", None)
    notebook.metadata.pop("language_info", None)
    return notebook


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"] for output in cell.outputs)


@needs_native
def test_the_notebook_runs_and_prints_what_stands_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    there, now = nbformat.read(NOTEBOOK, as_version=4), executed(tmp_path)
    for old, new in zip(code_of(there), code_of(now), strict=True):
        if OF_WORDS in old.metadata.get("tags", ()):
            assert printed(new).strip(), new.source
        else:
            assert printed(new) == printed(old), new.source


def test_the_notebook_shows_every_function_of_the_package() -> None:
    import perflab

    source = "\n".join(cell.source for cell in code_of(nbformat.read(NOTEBOOK, as_version=4)))
    used = set(re.findall(r"perflab\.(\w+)\(", source))
    assert used == {name for name in perflab.__all__ if not name.startswith("_")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(executed(Path(folder)), NOTEBOOK)
    sys.exit()
