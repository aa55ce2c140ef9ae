"""examples/notebook.ipynb: it runs, and its stored outputs are those of a run, of no machine."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.api.example_notebook import kernel_path, read_book, type_cells
from tests.api.kernel import shown
from tests.project.shown_commands import ROOT


@pytest.fixture
def book() -> Any:
    return read_book()


def by_source(book: Any, word: str) -> list[Any]:
    """Return the outputs of the only code cell that ends with a line."""
    code = [cell for cell in book.cells if cell["cell_type"] == "code"]
    (cell,) = [cell for cell in code if cell["source"].splitlines()[-1] == word]
    return list(cell["outputs"])


def check_outputs(book: Any) -> None:
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
    assert kinds == {"display_data", "execute_result"}
    assert "COMPLETED" in shown(by_source(book, "run.wait()"), "text/html")[0]
    assert shown(by_source(book, "study.wait()"))[-1] == "{'COMPLETED': 4}"
    (report,) = shown(by_source(book, "report"))
    assert " times 1 rank" in report
    assert "4 of 4 runs ok" in report
    (figure,) = shown(by_source(book, "report.figures[0]"), "text/html")
    assert "data:image/png;base64,iVBOR" in figure
    assert "cuda_oom" in shown(by_source(book, code[-1]["source"]))[0]


def test_stored_outputs_are_complete_and_name_no_folder_of_a_machine(book: Any) -> None:
    check_outputs(book)
    text = json.dumps(book)
    assert len(text) < 400_000
    # Images are no text.
    words = re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    # The log of the example names these.
    words = words.replace("/opt/conda/lib/", "").replace("/home/user/gpt/", "")
    assert re.findall(r"(?<![\w.<])/(?:[\w.-]+/)+[\w.-]*", words) == []
    assert not re.search(r"\b(localhost|127\.0\.0\.1)\b", words)
    assert "<script" not in words


@pytest.mark.long
def test_the_notebook_runs(book: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PATH", kernel_path())
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    typed = list(type_cells(book, folder))
    assert [one for one in typed if one.difference] == []
    check_outputs(book)
    assert (folder / "results" / "digits.html").stat().st_size > 10_000
