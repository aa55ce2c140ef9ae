"""examples/notebook.ipynb: run its cells, and compare what they print with the stored outputs."""

import copy
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from tests.api.kernel import run_book
from tests.project.shown_commands import ROOT, Typed

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
# A run id, or a number.
VARIES = re.compile(r"\d{8}-\d{6}-\d+-[0-9a-f]{8}|[\d.]+")


def read_book() -> Any:
    text = NOTEBOOK.read_text(encoding="utf-8")
    return nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]


def type_cells(book: Any, folder: Path) -> Iterator[Typed]:
    """Run a notebook in a folder of examples; yield how the outputs of each cell changed.

    The stored outputs are replaced. Formats and the first line of each output are compared,
    numbers as one.
    """
    stored = copy.deepcopy([cell for cell in book.cells if cell["cell_type"] == "code"])
    for cell, outputs in zip(stored, run_book(book, folder), strict=True):
        expected, found = _summary(cell["outputs"]), _summary(outputs)
        same = expected == found
        line = cell["source"].splitlines()[-1]
        yield Typed(line, "" if same else f"- {expected}\n+ {found}")


def _summary(outputs: list[Any]) -> list[tuple[str, tuple[str, ...], str]]:
    return [
        (one["output_type"], tuple(sorted(one.get("data", {}))), _first_line(one))
        for one in outputs
    ]


def _first_line(output: Any) -> str:
    first, *_ = output.get("data", {}).get("text/plain", "").splitlines() or [""]
    return " ".join(VARIES.sub("#", first).split())


def kernel_path() -> str:
    """Return a PATH on which the kernel's `python` is this one, and there is no scheduler."""
    return f"{Path(sys.executable).parent}:/usr/bin:/bin"
