"""Tables without a folded cell look as rich draws them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.model.report import Cell, Column, ReportTable
from hpc_train.reports.formats.text import aligned, folded

WORDS = st.text("ab1.% [],-é", max_size=9).map(lambda text: " ".join(text.split()))
HEADS = st.lists(WORDS.filter(bool), min_size=1, max_size=3).map("\n".join)


@st.composite
def tables(draw: st.DrawFn) -> ReportTable:
    heads = draw(st.lists(HEADS, min_size=1, max_size=5))
    columns = tuple(
        Column(key=f"k{number}", heading=head, align=draw(st.sampled_from(["left", "right"])))
        for number, head in enumerate(heads)
    )
    row = st.tuples(*(WORDS.map(lambda text: Cell(text=text)) for _ in heads))
    rows = tuple(draw(st.lists(row, min_size=1, max_size=4)))
    return ReportTable(title="T", columns=columns, rows=rows)


@settings(deadline=None)
@given(tables())
def test_it_looks_as_rich_draws_it(table: ReportTable) -> None:
    rows = [[cell.text for cell in row] for row in table.rows]
    assert aligned(table.columns, rows, 2, 200) == folded(table, 200)


def test_what_does_not_fit_is_left_to_rich() -> None:
    columns, rows = (Column(key="a", heading="words"), Column(key="b", heading="1")), [["12", "3"]]
    assert aligned(columns, rows, 2, 8) == "words  1\n────────\n   12  3"
    assert aligned(columns, rows, 2, 7) is None
    assert aligned(columns, rows, 1, 7) == "words 1\n───────\n   12 3"


def test_characters_of_two_places_are_left_to_rich() -> None:
    columns = (Column(key="a", heading="name", align="left"),)
    assert aligned(columns, [["\u7bc0\u70b9"]], 2, 80) is None
