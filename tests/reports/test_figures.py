from __future__ import annotations

import matplotlib as mpl

from hpc_train.model.report import Figure
from hpc_train.reports.figures import scaling_figure
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.reports.finished import finished


def drawn() -> Figure:
    study, records = finished()
    runs = run_frame(study, records)
    return scaling_figure(study, runs, speedup_frame(runs, study))


def test_the_same_study_gives_the_same_bytes_and_no_date() -> None:
    first, second = drawn(), drawn()
    assert first.images == second.images
    assert first.images["png"].startswith(b"\x89PNG")
    assert b"<dc:date>" not in first.images["svg"]


def test_settings_of_the_caller_neither_matter_nor_change() -> None:
    plain = drawn()
    with mpl.rc_context({"font.size": 20, "svg.hashsalt": "other"}):
        assert drawn().images == plain.images
        assert mpl.rcParams["font.size"] == 20


def test_more_runs_change_the_picture() -> None:
    study, records = finished()
    runs = run_frame(study, records[:-3])
    assert scaling_figure(study, runs, speedup_frame(runs, study)).images != drawn().images
