"""docs/traps.md: each trap once, with tests that exist, under the numbers that scripts give."""

from __future__ import annotations

import re
from pathlib import Path

from hpc_train.lint.rules import all_rules
from hpc_train.plans.explanations import DIRECTIVES
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.registry import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/traps.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^### F(\d+): .+?\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ENTRIES = [(int(number), text) for number, text in ENTRY.findall(PAGE)]


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
