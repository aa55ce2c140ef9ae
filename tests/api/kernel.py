"""Run the cells of a notebook in a real kernel."""

import json
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

LIMIT_S = 300


def executed(folder: Path, *cells: str) -> list[Any]:
    """Return the outputs of each cell, all run in one kernel that starts in a folder."""
    empty: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    code = [{**empty, "source": cell} for cell in cells]
    text = json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": code})
    book = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    return run_book(book, folder)


def run_book(book: Any, folder: Path) -> list[Any]:
    """Execute a notebook; return the outputs of each code cell."""
    client = NotebookClient(
        book,
        timeout=LIMIT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return [cell["outputs"] for cell in book.cells if cell["cell_type"] == "code"]


def shown(outputs: list[Any], form: str = "text/plain") -> list[str]:
    """Return the outputs of a cell in one format."""
    return [output["data"][form] for output in outputs if form in output.get("data", {})]
