""""""

import csv
import io
from xml.etree import ElementTree as Xml

from hpc_train.reports import csv_table
from hpc_train.reports.gates import junit
from hpc_train.reports.report import GateOutcome, GateResult, ReportTable
from tests.reports.finished import report


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_table.render_tidy(report()))))


def test_a_value_has_its_unit_and_which_way_is_better() -> None:
    first = [row for row in rows() if row["run_id"] == "srun-2-0"]
    speed = next(row for row in first if row["metric"] == "samples_per_second")
    assert (float(speed["value"]), speed["unit"], speed["better"]) == (1940.0, "1/s", "higher")
    assert (speed["study"], speed["nodes"], speed["state"]) == ("resnet", "2", "COMPLETED")


def test_a_run_without_a_value_has_a_row_that_says_why() -> None:
    failed = [row for row in rows() if row["run_id"] == "torchrun-4-0"]
    assert [row["state"] for row in failed] == ["FAILED"] * len(failed)
    assert failed[0]["problem"].startswith("x | <script>")
    assert len({row["run_id"] for row in rows()}) == 18


def test_bounds_and_kinds_are_columns_of_their_own() -> None:
    """A row without them leaves the columns empty, and adds none."""
    rows = (
        {"step_s": {"low": 0.5, "high": None}, "bytes": {"states": {"low": 1, "high": 2}}},
        {"step_s": None, "bytes": {"states": {"low": 3, "high": 3}}, "end_s": None, "end_s_low": 2},
    )
    table = ReportTable(title="", columns=(), rows=(), key="rows", records=rows)
    assert csv_table.table_text(table).splitlines() == [
        "step_s_low,step_s_high,bytes_states_low,bytes_states_high,end_s,end_s_low",
        "0.5,,1,2,,",
        ",,3,3,,2",
    ]


COUNTS = ("tests", "failures", "errors", "skipped")
HOSTILE = 'a & <b> "c" ]]>\x00\x1b[31m\ud800\ufffe\n'


def verdict(gate: str, outcome: GateOutcome) -> GateResult:
    return GateResult(gate=gate, where=HOSTILE, outcome=outcome, reason=f"because {HOSTILE}")


def test_a_suite_per_gate_and_a_case_per_point() -> None:
    found = [
        verdict("missing", "met"), verdict("efficiency", "met"), verdict("efficiency", "not met"),
        verdict("efficiency", "not decided"), verdict("site", "error"),
    ]  # fmt: skip
    made = junit("resnet", found)
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
