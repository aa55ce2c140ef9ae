"""Options of a report."""

from __future__ import annotations

from hpc_train.model.expected_study import IntervalKind
from hpc_train.model.log_selection import Search
from hpc_train.model.training_target import Target
from hpc_train.model.value import Value


class ReportOptions(Value, frozen=True, kw_only=True):
    """Options of a report in addition to the table of points.

    `figures`: draw them, as these kinds of `images` (svg, png, pdf, inline), or only the main one.
    `wide`: every column. `allow_mixed` names conditions that may differ in a series. `interval` is
    that of ratios; without it, the one of the study.
    `forecast` is the multiple of the largest measured size that fits are extrapolated to, with
    `force` also beyond 2. `against` names a stored study or report that this one must not be slower
    than, and `search` says where to find it. `details`: include the details of each run. `target`:
    report samples and time to it. `digests`: compute the digests of the logs.
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
