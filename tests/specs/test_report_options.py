"""`--target` from the command line to the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.errors import ReportError
from hpc_train.model.log_selection import Search
from hpc_train.model.report_options import ReportOptions
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.write_report import render_report
from hpc_train.specs.report_options import target_of

DEMO = Path(__file__).parents[2] / "results" / "studies" / "digits-two-cores"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("accuracy=93", "did you mean 0.93"),
        ("accuracy=0", "above 0"),
        ("acuracy=0.9", "did you mean 'accuracy'"),
        ("loss=low", "'low' is not a number"),
        ("loss=nan", "'nan' is not a number"),
        ("accuracy", "'' is not a number"),
    ],
)
def test_what_no_training_can_reach_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ReportError, match=wrong) as refused:
        target_of(text)
    assert "--target accuracy=0.93" in (refused.value.hint or "")


def test_the_demo_says_who_got_there() -> None:
    found = report_inputs([str(DEMO)], Search(root=DEMO.parent))
    report = build_report(found, ReportOptions(target=target_of("accuracy=0.937")))
    shown = render_report(report, "text")
    assert "Time to accuracy >= 0.937" in shown
    assert shown.count("0/3") == 3
    assert len(re.findall(r"(?:not reached +){3}", shown)) == 3
    assert "Time to accuracy" in render_report(report, "html")
    assert max(map(len, shown.splitlines())) <= 100
