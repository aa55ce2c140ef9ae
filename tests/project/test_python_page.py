"""docs/python.md: its examples run, in their order, and its tables are complete."""

import inspect
import re
from pathlib import Path

import pytest

import hpc_train
from tests.submissions.conftest import desk

__all__ = ["desk"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CLASSES = [name for name in hpc_train.__all__ if name[0].isupper() and "Error" not in name]
FUNCTIONS = [name for name in hpc_train.__all__ if name.islower() and name != "__version__"]


@pytest.mark.process
def test_the_examples_of_the_page_run(desk: Path) -> None:
    names: dict[str, object] = {}
    count = 0
    for kind, text in BLOCKS:
        if kind in ("yaml", "csv"):
            name, _, content = text.removeprefix("# ").partition("\n")
            Path(name).write_text(content, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, f"docs/python.md, block {count}", "exec"), names)  # noqa: S102
            count += 1
    assert count > 5


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_each_public_name_has_a_docstring_that_says_what_it_raises(name: str) -> None:
    thing = getattr(hpc_train, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        assert "\nRaises:\n" in str(inspect.getdoc(thing))
