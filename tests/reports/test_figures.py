import io
import re
import time
from xml.etree import ElementTree as Xml

import msgspec
import pandas as pd
import pytest
from matplotlib.text import Text
from PIL import Image

from hpc_train.reports.figures import FIGURES, figures
from hpc_train.reports.figures.canvas import Measured, heading_lines, plot_data_of
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.measurements import Flag, FlagCode, node_frame
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.reports.finished import finished
from tests.reports.measured import fitted, measured, node_times

SVG = "{http://www.w3.org/2000/svg}"
KINDS = ("svg", "pdf")
# Of a few series without a gate on doubling.
DRAWN = [name for name in FIGURES if name != "efficiency"]


def simple(records_less: int = 0) -> tuple[ExpectedStudy, Measured]:
    study, records = finished()
    records = records[: len(records) - records_less]
    runs = run_frame(study, records)
    return study, Measured(runs, speedup_frame(runs, study), (), node_frame(study, []))


def small() -> tuple[ExpectedStudy, Measured]:
    return measured((1, 2, 4, 8), ("srun", "torchrun"), 3, (("torchrun", 4),))


def texts(study: ExpectedStudy, tables: Measured, name: str) -> list[str]:
    """Return the texts of a figure."""
    canvas = FIGURES[name](plot_data_of(study, tables))
    assert canvas is not None
    return [one.get_text() for one in canvas.figure.findobj(Text)]


@pytest.mark.long
def test_the_same_study_gives_the_same_bytes_and_no_date() -> None:
    first, second = (figures(*small(), KINDS) for _ in range(2))
    assert [figure.name for figure in first] == DRAWN
    assert first == second
    for figure in first:
        assert figure.images["pdf"].startswith(b"%PDF")
        assert b"CreationDate" not in figure.images["pdf"]
        assert b"<dc:date>" not in figure.images["svg"]
        assert figure.data is not None
        assert len(figure.data.rows) == len(figure.data.records) > 0


def test_points_without_a_result_are_hollow_and_end_the_line() -> None:
    study, tables = small()
    (figure,) = figures(study, tables, (), ["scaling"])
    assert figure.data is not None
    empty = [row for row in figure.data.records if row["drawn"] == "no result"]
    # In both panels.
    assert [(row["series"], row["gpus"]) for row in empty] == [("launcher=torchrun", 16)] * 2
    drawing = plot_data_of(study, tables)
    assert [drawing.gaps(style) for style in drawing.styles] == [[], [16]]


@pytest.mark.long
def test_hostile_names_are_text() -> None:
    names = ('$a_b$ <script>alert(1)</script> id="x"', "new\nline \x1b[31m", "long " * 90, "日本")
    study, tables = measured((1, 2), names, 2, ())
    study = msgspec.structs.replace(study, name="<b>$x$</b>\x00")
    for figure in figures(study, tables, ("svg",)):
        assert Xml.fromstring(figure.images["svg"]).tag == f"{SVG}svg"  # noqa: S314
    assert any("$a_b$ <script>" in text for text in texts(study, tables, "scaling"))


def test_the_slow_node_is_named() -> None:
    study, tables = small()
    shown = "\n".join(texts(study, tables, "nodes"))
    assert re.search(r"slowest: node07, \+1[12]\.\d % in the median of its runs", shown)
    even = tables._replace(nodes=node_times(tables.runs, by=1.0))
    assert "no node is 3 % slower" in "\n".join(texts(study, even, "nodes"))


def test_a_peak_is_drawn_only_where_it_is_bounded() -> None:
    study, tables = small()
    assert "peak" not in "".join(texts(study, tables, "fits"))
    bounded = fitted(tables.points, "launcher=srun", peak=11.0)
    assert "44 [8, 80]" in "".join(texts(study, tables._replace(laws=bounded), "fits"))
    refused = tuple(law for law in tables.laws if law.refused)
    assert figures(study, tables._replace(laws=refused), (), ["fits"]) == ()


def test_the_parts_of_a_step_add_up() -> None:
    (figure,) = figures(*small(), (), ["time-split"])
    assert figure.data is not None
    sums: dict[tuple[str, int], float] = {}
    for row in figure.data.records:
        if row["value"] is not None:
            key = (row["series"], row["gpus"])
            sums[key] = sums.get(key, 0.0) + row["value"]
    assert len(sums) == 7
    assert list(sums.values()) == pytest.approx([100.0] * 7)


def many(series: int) -> tuple[ExpectedStudy, Measured]:
    """Copy a small study's series until there are so many."""
    study, tables = measured((1, 2, 4, 8, 16, 32, 64, 128), ("a",), 5, ())

    def copies(frame: pd.DataFrame) -> pd.DataFrame:
        parts = [frame.assign(series=f"case={i}") for i in range(series)]
        table: pd.DataFrame = pd.concat(parts, ignore_index=True)
        return table

    runs = copies(tables.runs)
    runs["run_id"] = [f"run-{i}" for i in range(len(runs))]
    return study, Measured(runs, copies(tables.points), (), node_times(runs[:400]))


@pytest.mark.long
def test_ten_thousand_runs_are_thinned_and_it_is_said() -> None:
    study, tables = many(250)
    assert (len(tables.runs), len(tables.points)) == (10_000, 2_000)
    figures(study, simple()[1], ("svg",), ["efficiency"])
    size = 0
    for name in FIGURES:
        start = time.process_time()
        drawn = figures(study, tables, ("svg",), [name])
        assert time.process_time() - start < 3, f"{name}: a second, and room for a busy machine"
        size += sum(len(figure.images["svg"]) for figure in drawn)
    assert size < 3_000_000
    assert "first 10 of 250 series" in heading_lines(plot_data_of(study, tables))


def test_a_flagged_point_has_a_ring_and_a_legend_entry() -> None:
    study, tables = small()
    assert "flagged" not in "".join(texts(study, tables, "scaling"))
    points, doubt = tables.points.copy(), (Flag(FlagCode.ACCURACY, "-3 points"),)
    points["flags"] = [doubt if nodes == 8 else () for nodes in points["nodes"]]
    tables = tables._replace(points=points)
    assert "flagged: accuracy" in texts(study, tables, "scaling")
    figure, *_ = figures(study, tables, ())
    assert figure.data is not None
    marked = {(row["gpus"], row["series"]) for row in figure.data.records if row["flags"]}
    assert marked == {(32, "launcher=srun"), (32, "launcher=torchrun")}


@pytest.mark.long
def test_pictures_are_not_blank() -> None:
    for figure in figures(*small(), ("png",)):
        grey = Image.open(io.BytesIO(figure.images["png"])).convert("L")
        assert len(grey.getcolors() or range(999)) > 20, figure.name
