"""docs/python.md: its examples run, in their order, and its tables are complete."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import hpc_train
from tests.pipeline.conftest import desk

__all__ = ["desk"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CLASSES = [name for name in hpc_train.__all__ if name[0].isupper() and "Error" not in name]
FUNCTIONS = [name for name in hpc_train.__all__ if name.islower() and name != "__version__"]


def listed(name: str) -> bool:
    """Whether the first column of a table of the page has a name."""
    cells = "".join(re.findall(r"^\| (`[^|]+) \|", PAGE, re.MULTILINE))
    return re.search(rf"(?<![\w.]){name}\b", cells) is not None


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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_page_lists_each_function_with_its_arguments(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name}\(([^`]+)\)` \|", PAGE, re.MULTILINE)
    if "…" in row:
        row += re.findall(rf"of `{name}`: ([^;.]+)", PAGE)[0]
    named = re.findall(r"\w+", re.sub(r"\([^)]*\)", "", row))
    assert named == list(inspect.signature(getattr(hpc_train, name)).parameters)


@pytest.mark.parametrize("name", CLASSES)
def test_the_page_lists_each_public_attribute(name: str) -> None:
    public = [word for word in dir(getattr(hpc_train, name)) if not word.startswith("_")]
    assert [word for word in public if not listed(word)] == []


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_each_public_name_has_a_docstring_that_says_what_it_raises(name: str) -> None:
    thing = getattr(hpc_train, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        assert "\nRaises:\n" in str(inspect.getdoc(thing))
