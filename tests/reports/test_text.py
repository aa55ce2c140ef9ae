"""Tables as text: aligned as rich aligns them, and never wider than the terminal."""

from hypothesis import given, settings, strategies as st

from hpc_train.reports.report import Column, Report, ReportTable
from hpc_train.reports.text import render


def lines_of(table: ReportTable, width: int) -> list[str]:
    report = Report(title="R", summary=(), tables=(table,))
    return render(report, width).rstrip("\n").split("\n")[6:]


def two_columns(*cells: str, head: str = "name", drop: int = 0) -> ReportTable:
    columns = (
        Column(key="a", heading=head, align="left"),
        Column(key="b", heading="b", drop=drop),
    )
    return ReportTable(title="T", columns=columns, rows=tuple((cell, "1") for cell in cells))


def test_a_column_that_may_be_left_out_is_named() -> None:
    shown = lines_of(two_columns("context_parallel_ring", drop=1), 22)
    assert shown[:3] == ["name", "─────────────────────", "context_parallel_ring"]
    assert shown[4:] == ["Columns that do not", "  fit (--wide shows", "  them): b."]


def test_a_long_name_is_wrapped_at_its_parts() -> None:
    shown = lines_of(two_columns("pipeline_1f1b_interleaved_v4"), 20)
    assert shown[2:] == ["pipeline_1f1b_     1", "interleaved_v4"]


def test_no_number_is_cut() -> None:
    cells = (
        "x=0.00012345678901234567890",
        "a 0.998 [0.994, 1.00]; b 1.03e-04 [9.44e-05, 1.12e-04]",
    )
    text = " ".join(" ".join(lines_of(two_columns(*cells), 18)).split())
    for number in (
        "0.00012345678901234567890",
        "0.998",
        "[0.994,",
        "1.00];",
        "1.03e-04",
        "[9.44e-05,",
    ):
        assert number in text


@settings(deadline=None)
@given(st.text("ab1.%_/[],- é", max_size=60), st.integers(min_value=1, max_value=40))
def test_nothing_is_lost_when_cells_are_wrapped(text: str, width: int) -> None:
    shown = lines_of(two_columns(text, head="n"), width)
    kept = "".join(line.removesuffix("1") if i == 0 else line for i, line in enumerate(shown[2:]))
    assert kept.replace(" ", "") == text.replace(" ", "")


def test_chinese_characters_take_two_places() -> None:
    assert lines_of(two_columns("\u7bc0\u70b9", "ab"), 80)[2:] == ["\u7bc0\u70b9  1", "ab    1"]
