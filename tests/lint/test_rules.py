"""Every rule finds what it is for, and leaves alone what only looks like it."""

import pytest

from hpc_train.lint.lint_script import lint_script
from hpc_train.lint.rules import all_rules
from tests.cases import cases as table
from tests.lint.conftest import Case, cases

CASES = cases()
IDS = [f"{case.rule}-{'wrong' if case.wrong else 'right'}" for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_rule(case: Case) -> None:
    found = lint_script(case.text, case.context)
    assert (case.rule in [finding.id for finding in found]) is case.wrong, found
    assert all(1 <= finding.line <= case.text.count("\n") + 1 for finding in found)


def test_each_rule_has_a_pair() -> None:
    ids = {rule.id for rule in all_rules()}
    assert {case.rule for case in CASES if case.wrong} == ids
    assert {case.rule for case in CASES if not case.wrong} == ids


def test_ids_are_unique_and_texts_are_sentences() -> None:
    rules = all_rules()
    assert len({rule.id for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.why.endswith("."), rule.id
        assert not rule.advice.endswith("."), rule.id
        assert rule.severity in ("error", "warning", "info")


@pytest.mark.parametrize(
    ("rule", "severity", "text"),
    table("lint/severities.yaml", "a_finding_is_as_severe_as_it_is_certain"),
)
def test_a_finding_is_as_severe_as_it_is_certain(rule: str, severity: str, text: str) -> None:
    found = lint_script(f"#!/bin/bash\n{text}srun python t.py\n")
    assert [one.severity for one in found if one.id == rule] == [severity]
