from __future__ import annotations

import itertools

import pytest

from hpc_train.reports.figures.series_styles import SMALL_MULTIPLES, SPREAD, layout, styles


def rows(series: int, sizes: tuple[int, ...]) -> list[dict[str, object]]:
    return [{"series": f"s{i}", "size": n} for i in range(series) for n in sizes]


@pytest.mark.parametrize("series", [1, 2, 3, 4, 6, 7, 40])
@pytest.mark.parametrize("sizes", [(2,), (1, 2), (1, 2, 4, 8, 16), (1, 3, 1024)])
def test_marks_of_a_size_stay_near_it(series: int, sizes: tuple[int, ...]) -> None:
    drawn = styles(rows(series, sizes))
    assert [style.series for style in drawn] == [f"s{i}" for i in range(series)]
    together = series if series < SMALL_MULTIPLES else 1
    for own, other in itertools.pairwise(drawn[:together]):
        assert own.beside < other.beside
        assert own.runs < other.runs
        assert own.marker_points > other.marker_points >= 3
    assert max(abs(style.beside) for style in drawn) <= SPREAD / 2
    place = layout(rows(series, sizes))
    assert place.sizes == sizes
    assert place.low < sizes[0] <= sizes[-1] < place.high
