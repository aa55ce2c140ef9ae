"""docs/traps.md: each trap once, with tests that exist, under the numbers that scripts give."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from hpc_train.lint.rules import all_rules
from hpc_train.plans.explanations import DIRECTIVES
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.registry import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/traps.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^### F(\d+): .+?\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ENTRIES = [(int(number), text) for number, text in ENTRY.findall(PAGE)]
ROW = re.compile(r"^\| F(\d+) [^|]+ \| [^|]+ \| `(\w+\.py)::(\w+)` \|$", re.MULTILINE)
ROWS = [(int(number), f"tests/traps/{file}", name) for number, file, name in ROW.findall(PAGE)]
TESTS = re.compile(r"`(tests/\S+\.py)::(\w+)`")


@cache
def functions(file: str) -> frozenset[str]:
    """Return the tests in a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_each_trap_is_there_once_and_in_order() -> None:
    assert [number for number, _ in ENTRIES] == list(range(1, 39))


def test_the_table_has_a_row_for_each_trap() -> None:
    assert [number for number, _, _ in ROWS] == [number for number, _ in ENTRIES]
    assert PAGE.count("\n| ") == len(ROWS) + 1


@pytest.mark.parametrize(("number", "file", "name"), ROWS, ids=lambda value: str(value)[:6])
def test_each_row_names_a_test_of_its_trap(number: int, file: str, name: str) -> None:
    assert f"_f{number:02}_" in name
    assert name in functions(file)
    assert (file, name) in TESTS.findall(dict(ENTRIES)[number])


@pytest.mark.parametrize(("number", "text"), ENTRIES, ids=lambda value: str(value)[:3].strip())
def test_each_trap_has_tests_that_exist(number: int, text: str) -> None:
    assert "*Wrong:* " in text
    assert "*Here:* " in text
    named = TESTS.findall(text)
    assert len(named) == text.count("\n- ")
    assert [name for file, name in named if name not in functions(file)] == []
    assert [name for _, name in named if f"_f{number:02}_" in name]


def test_each_test_of_a_trap_is_named() -> None:
    files = [f"tests/traps/{path.name}" for path in ROOT.glob("tests/traps/test_*.py")]
    files.append("tests/end_to_end/test_traps.py")
    there = {(file, name) for file in files for name in functions(file) if name[:5] == "test_"}
    assert len(there) > 38
    assert there - set(TESTS.findall(PAGE)) == set()


def test_scripts_give_numbers_that_are_there() -> None:
    programs = [one for name in BUILT_IN["launchers"] for one in find_launcher(name).programs]
    reasons = [*DIRECTIVES.values(), *(why for one in programs for why in one.options.values())]
    given = {reason.trap for reason in reasons} - {""}
    assert len(given) > 5
    assert given - {f"F{number}" for number, _ in ENTRIES} == set()


def test_rules_of_lint_are_there() -> None:
    named = set(re.findall(r"HT\d+", PAGE))
    assert len(named) > 10
    assert named - {rule.id for rule in all_rules()} == set()
