"""Verdicts of a report -> JUnit XML for continuous integration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

from hpc_train.json_files import write_file
from hpc_train.model.report import GateResult, Report
from hpc_train.reports.gate_table_and_sentences import verdicts_of
from hpc_train.reports.value_format import one_line


def write_junit(report: Report, path: Path) -> None:
    """Write one test suite per gate, in it one test case per point; not decided is skipped.

    Raises:
        StoreError: the file cannot be written.
    """
    write_file(path, junit(report))


def junit(report: Report) -> bytes:
    """Return the XML; the same report gives the same bytes."""
    found = verdicts_of(report)
    root = Xml.Element("testsuites", {"name": _text(report.name), **_counts(found)})
    for gate in dict.fromkeys(verdict.gate for verdict in found):
        own = [verdict for verdict in found if verdict.gate == gate]
        suite = Xml.SubElement(root, "testsuite", {"name": gate, **_counts(own)})
        for verdict in own:
            _case(suite, verdict, _text(f"{report.name}.{gate}"))
    Xml.indent(root)
    content: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _counts(found: Sequence[GateResult]) -> dict[str, str]:
    outcomes = [verdict.outcome for verdict in found]
    return {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("not met")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("not decided")),
        "time": "0",
    }


def _case(suite: Xml.Element, verdict: GateResult, name: str) -> None:
    where = {"classname": name, "name": _text(verdict.where), "time": "0"}
    case, reason = Xml.SubElement(suite, "testcase", where), _text(verdict.reason)
    if verdict.outcome == "not met":
        Xml.SubElement(case, "failure", {"message": reason, "type": verdict.gate}).text = reason
    elif verdict.outcome == "error":
        Xml.SubElement(case, "error", {"message": reason, "type": verdict.gate}).text = reason
    elif verdict.outcome == "not decided":
        Xml.SubElement(case, "skipped", {"message": reason})


def _text(text: str) -> str:
    """Return text without the characters that are invalid in XML."""
    return one_line(text)
