from __future__ import annotations

import itertools

import pytest

from hpc_train.reports.figures.series_styles import layout, styles


def rows(series: int, sizes: tuple[int, ...]) -> list[dict[str, object]]:
    return [{"series": f"s{i}", "ranks": n} for i in range(series) for n in sizes]


@pytest.mark.parametrize("series", [1, 2, 3, 4, 7, 40])
@pytest.mark.parametrize("sizes", [(2,), (1, 2), (1, 2, 4, 8, 16), (1, 3, 1024)])
def test_runs_stand_next_to_their_own_mean(series: int, sizes: tuple[int, ...]) -> None:
    drawn = styles(rows(series, sizes))
    assert [style.series for style in drawn] == [f"s{i}" for i in range(series)]
    for own, other in itertools.pairwise(drawn):
        assert own.mean < own.runs < other.mean
        assert own.runs / own.mean < other.mean / own.runs
    place = layout(rows(series, sizes))
    edges = [size * edge for size in sizes for edge in (drawn[0].mean, drawn[-1].runs)]
    assert edges == sorted(edges)
    assert place.low < edges[0]
    assert edges[-1] < place.high
