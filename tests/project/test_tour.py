"""The ways on the lab: every command of their pages prints what is shown.

The other parts of `make tour` are in test_first_pages.py and tests/api/test_example_notebook.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.tour import MOST_TO_A_FIGURE, desk, to_the_first_figure, walk_the_lab


@pytest.mark.long
@pytest.mark.slurm
def test_the_ways_on_the_lab(no_lab: None, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    typed = list(walk_the_lab(tmp_path, desk(tmp_path)))
    wrong = [f"$ {one.line}\n{one.difference}" for _, one in typed if one.difference]
    assert not wrong, "\n".join(wrong)
    assert len(typed) >= 15
    assert (tmp_path / "nodes.pdf").read_bytes().startswith(b"%PDF")


def test_a_first_figure_takes_few_commands() -> None:
    lines = to_the_first_figure()
    assert lines[0].startswith("pip install")
    assert " -o " in lines[-1]
    assert len(lines) <= MOST_TO_A_FIGURE
