from __future__ import annotations

import itertools
import re

import matplotlib as mpl
import pytest

from hpc_train.model.report import Figure
from hpc_train.reports.figures import scaling_figure
from hpc_train.reports.legend import heading_lines
from hpc_train.reports.looks import layout, looks
from hpc_train.reports.panels import Drawing, shown_basis
from hpc_train.reports.rows import plain_rows
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


def rows(series: int, sizes: tuple[int, ...]) -> list[dict[str, object]]:
    return [{"series": f"s{i}", "ranks": n} for i in range(series) for n in sizes]


@pytest.mark.parametrize("series", [1, 2, 3, 4, 7, 40])
@pytest.mark.parametrize("sizes", [(2,), (1, 2), (1, 2, 4, 8, 16), (1, 3, 1024)])
def test_runs_stand_next_to_their_own_mean(series: int, sizes: tuple[int, ...]) -> None:
    drawn = looks(rows(series, sizes))
    assert [look.series for look in drawn] == [f"s{i}" for i in range(series)]
    for own, other in itertools.pairwise(drawn):
        assert own.mean < own.runs < other.mean
        assert own.runs / own.mean < other.mean / own.runs
    place = layout(rows(series, sizes))
    edges = [size * edge for size in sizes for edge in (drawn[0].mean, drawn[-1].runs)]
    assert edges == sorted(edges)
    assert place.low < edges[0]
    assert edges[-1] < place.high


def test_the_title_says_regime_runs_and_intervals() -> None:
    study, records = finished()
    runs = run_frame(study, records)
    drawing = Drawing(plain_rows(runs), plain_rows(speedup_frame(runs, study)), None, "speedup")
    assert heading_lines("resnet", drawing, 0) == (
        "resnet\nstrong scaling, 3 runs a point, 95 % intervals"
    )
    assert heading_lines("resnet", drawing, 2).endswith(", 2 points not drawn")


def test_one_size_has_one_panel() -> None:
    study, records = finished()
    runs = run_frame(study, records)
    small = runs[runs["nodes"] == 1]
    one = scaling_figure(study, small, speedup_frame(small, study))
    width = re.compile(rb'<svg [^>]*width="([0-9.]+)pt"')
    both = [width.search(figure.images["svg"]) for figure in (one, drawn())]
    assert [float(match[1]) for match in both if match] == pytest.approx([5.4 * 72, 9.6 * 72])


def test_series_of_different_bases_show_the_most_common() -> None:
    bases = ["throughput", "epoch time", "epoch time"]
    assert shown_basis([{"basis": basis, "n_ok": 1} for basis in bases]) == "epoch time"
