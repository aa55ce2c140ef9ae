from __future__ import annotations

from xml.etree import ElementTree as Xml

from hpc_train.model.report import GateOutcome, GateResult
from hpc_train.reports.gate_table_and_sentences import gated
from hpc_train.reports.junit import junit
from tests.reports.finished import empty

COUNTS = ("tests", "failures", "errors", "skipped")
HOSTILE = 'a & <b> "c" ]]>\x00\x1b[31m\ud800\ufffe\n'


def verdict(gate: str, outcome: GateOutcome) -> GateResult:
    return GateResult(gate=gate, where=HOSTILE, outcome=outcome, reason=f"because {HOSTILE}")


def test_a_suite_per_gate_and_a_case_per_point() -> None:
    found = [
        verdict("missing", "met"), verdict("efficiency", "met"), verdict("efficiency", "not met"),
        verdict("efficiency", "not decided"), verdict("site", "error"),
    ]  # fmt: skip
    made = junit(gated(empty(), found))
    assert made == junit(gated(empty(), found))
    root = Xml.fromstring(made)  # noqa: S314 - our own
    counts = [{k: suite.get(k) for k in ("name", *COUNTS)} for suite in root]
    assert counts == [
        {"name": "missing", "tests": "1", "failures": "0", "errors": "0", "skipped": "0"},
        {"name": "efficiency", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"},
        {"name": "site", "tests": "1", "failures": "0", "errors": "1", "skipped": "0"},
    ]
    assert root[2][0].find("error") is not None
    met, failed, skipped = root[1]
    assert len(met) == 0
    failure = failed.find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith('because a & <b> "c" ]]>\\x00\\x1b[31m')
    assert skipped.find("skipped") is not None
