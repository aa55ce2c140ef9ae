"""The report on a history: its words, tables, figure and page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from hpc_train.model.report import Report
from hpc_train.model.track import TrackEntry
from hpc_train.reports.figures import track_figures
from hpc_train.reports.formats import csv_table, json_report, text
from hpc_train.reports.formats.page import render as page
from hpc_train.reports.track_names import TrackInput
from hpc_train.reports.track_report import track_report
from hpc_train.reports.track_tables import SHOWN
from hpc_train.reports.track_verdicts import verdicts
from hpc_train.tables.track_history import tracks
from tests.reports.chromium import PROGRAM, browser
from tests.tables.histories import entry, history, point, sized

STEP = [100.0] * 20 + [90.0] * 6
HOSTILE = "<script>alert(1)</script>\x1b[31m"


def clean() -> list[TrackEntry]:
    """One step, at entry 20, and no other change by chance."""
    return history(STEP, noise=0.01, seed=2)


def given(entries: list[TrackEntry], threshold: float = 0.05) -> TrackInput:
    return TrackInput(
        title="gpt on marvin",
        entries=entries,
        files=[f"history/{number}.json" for number in range(len(entries))],
        tracks=tracks(entries),
        changed={(0, 0): [("driver", "580", "590")]},
        threshold=threshold,
    )


def report(found: TrackInput, *, drawn: bool = False, values_first: bool = False) -> Report:
    figures = track_figures(found, ("inline",)) if drawn else ()
    return track_report(found, verdicts(found), figures, values_first=values_first)


def test_text_says_what_is_worse_since_when_and_what_changed() -> None:
    shown = " ".join(text.render(report(given(sized(STEP, 2))), 100).split())
    assert "Worse than before: 3 of 3 series of values." in shown
    assert "Worse: all 2 sizes: speed 0.90" in shown
    assert "since 2026-01-21 03:00 (6 values; before: 20)" in shown
    assert "driver: 580 → 590" in shown
    assert "no recorded condition" in shown
    assert "Measured: 26 entries, 2026-01-01 03:00 to 2026-01-26 03:00" in shown


def test_a_loss_is_worse_unless_its_whole_interval_is_within_the_threshold() -> None:
    (track,) = (one for one in given(clean()).tracks if one.speed)
    assert track.newest is not None
    ratio, low = track.newest.ratio, track.newest.low
    assert low < ratio < 1
    outcomes = [
        [one.outcome for one in verdicts(given(clean(), 1 - limit)) if "," not in one.where]
        for limit in ((ratio + low) / 2, low - 0.001)
    ]
    assert outcomes == [["not met"], ["met"]]


def test_a_table_of_a_point_has_its_newest_entries_and_says_so() -> None:
    made = report(given(clean()))
    (table,) = [table for table in made.tables if table.title == "4 GPUs"]
    assert len(table.rows) == SHOWN
    assert table.rows[-1][0].text == "2026-01-26 03:00"
    assert any(f"newest {SHOWN} entries" in note for note in made.notes)
    assert [row[-1].text for row in table.rows if "speed" in row[-1].text] != []


def test_json_and_csv_have_every_value() -> None:
    found = given([*clean(), entry(30, point(0.0))])
    content = json.loads(json_report.render(report(found)))
    assert len(content["values"]) == 27
    assert (
        content["values"][-1] | {"value": None, "n_ok": 0, "not_ok": "2 FAILED"}
        == (content["values"][-1])
    )
    assert content["rows"][0]["step"]["high"] < 1
    assert content["changes"][0]["changed"] == ["driver: 580 → 590"]
    lines = csv_table.render(report(found, values_first=True)).splitlines()
    assert len(lines) == 28
    assert lines[0].startswith("started,site,study,series,nodes,")


def test_the_figure_marks_each_change_and_explains_each_entry() -> None:
    (figure,) = track_figures(given(clean()), ("inline", "png"))
    assert figure.name == "track-speed"
    svg = figure.images["inline"].decode()
    titles = re.findall(r"<title>2026-01-.. 03:00, 4 GPUs: [\d.]+ samples/s, n=2<", svg)
    assert len(titles) == len(STEP)
    assert figure.data is not None
    assert len(figure.data.rows) == len(STEP)
    again = track_figures(given(clean()), ("inline", "png"))
    assert again[0].images == figure.images


def test_of_many_points_those_with_a_change_are_drawn() -> None:
    days = [
        entry(day, *(point(100.0 + day % 3 - (20 if n == 11 and day > 9 else 0), nodes=n + 1)
                     for n in range(12)))
        for day in range(16)
    ]  # fmt: skip
    (figure,) = track_figures(given(days))
    assert "8 of 13 points" in figure.images["inline"].decode()
    assert "48 GPUs" in figure.images["inline"].decode()


def test_hostile_names_are_text() -> None:
    days = [entry(day, point(100.0), study=HOSTILE) for day in range(3)]
    days += [entry(day, point(100.0)) for day in range(3)]
    shown = page.render(report(given(days), drawn=True))
    assert "<script>alert" not in shown
    assert "\x1b" not in shown
    assert "\x1b" not in text.render(report(given(days)), 100)


def test_a_history_of_one_entry_has_a_page() -> None:
    shown = page.render(report(given(history([100.0])), drawn=True))
    assert "No series of values has a verdict yet." in shown
    assert "fewer than 5 values" in shown


@pytest.mark.process
@pytest.mark.skipif(not shutil.which(PROGRAM), reason=f"{PROGRAM} is not installed")
def test_the_page_fits_a_phone_asks_for_nothing_and_has_no_errors(tmp_path: Path) -> None:
    path = tmp_path / "track.html"
    path.write_text(page.render(report(given(sized(STEP, 4)), drawn=True)), encoding="utf-8")
    with browser(tmp_path / "profile") as tab:
        for width in (390, 1280):
            tab.open(path, width)
            assert tab.value("document.documentElement.scrollWidth") <= width
        assert tab.requests == [path.as_uri()]
        assert tab.complaints == []
        assert tab.value("document.querySelector('.kind').textContent") == "History of a site"
        assert tab.value("document.querySelectorAll('figure').length") == 1
