"""What a report should hold beside the table of points."""

from __future__ import annotations

from hpc_train.model.measurement import IntervalKind
from hpc_train.model.target import Target
from hpc_train.model.value import Value
from hpc_train.pipeline.search import Search


class Asked(Value, frozen=True, kw_only=True):
    """Wishes of the reader.

    `figures`: draw them, as these kinds of `images` (svg, png, pdf, inline), or only the main one.
    `wide`: every column. `allow_mixed` names conditions that may differ in a series. `interval` is
    that of ratios; without it, the one of the study.
    `forecast` is how many times the largest measured size a fit should be continued to,
    with `force` also beyond 2. `against` names a stored study or report that this one must not be
    slower than, and `search` says where to find it. `details`: what a page shows of each run.
    `target`: say what each point takes to it.
    `digests`: read the logs once more to say which ones they were.
    """

    images: tuple[str, ...] = ("svg", "png")
    main_figure_only: bool = False
    wide: bool = False
    figures: bool = False
    details: bool = False
    digests: bool = False
    allow_mixed: tuple[str, ...] = ()
    interval: IntervalKind | None = None
    forecast: float | None = None
    force: bool = False
    against: str | None = None
    target: Target | None = None
    search: Search | None = None
