"""Options of a report, and the target that a training should reach."""

from typing import Literal

from hpc_train.base.values import Value
from hpc_train.jobs.log_selection import Search

# Of an interval that is not one of several decisions at once.
# Fields without which a ratio of speeds has no meaning; other conditions may be compared.
MUST_MATCH = ("model", "data", "dataset", "global_batch", "parser", "counted", "sequence_length")
CONFIDENCE = 0.95


class Target(Value, frozen=True, kw_only=True):
    """An accuracy (a fraction) to be reached from below, or a loss from above."""

    metric: Literal["accuracy", "loss"]
    value: float

    @property
    def higher(self) -> bool:
        """Whether a higher value is better."""
        return self.metric == "accuracy"

    def __str__(self) -> str:
        """Return it as `accuracy >= 0.93`."""
        return f"{self.metric} {'>=' if self.higher else '<='} {self.value:g}"


class Paper(Value, frozen=True, kw_only=True):
    """How figures are drawn: their width in inches (None: for a screen), with a title or not."""

    width: float | None = None
    title: bool = True


SCREEN = Paper()


class ReportOptions(Value, frozen=True, kw_only=True):
    """Options of a report in addition to the table of points.

    `figures`: draw the figures, or only the main one, in the formats of `images` (svg, png,
    pdf). `wide`: all columns. `allow_mixed`: conditions that may differ within a series.
    `forecast`: the multiple of the largest measured size to which fits are extrapolated, at most 2.
    `against`: the study or report that is the reference of the regression gate,
    searched with `search`. `details`: include the details of each run. `target`: report the samples
    and the time to reach it. `paper`: the size of the
    figures.
    """

    images: tuple[str, ...] = ("svg", "png")
    paper: Paper = SCREEN
    main_figure_only: bool = False
    wide: bool = False
    figures: bool = False
    details: bool = False
    allow_mixed: tuple[str, ...] = ()
    forecast: float | None = None
    against: str | None = None
    target: Target | None = None
    search: Search | None = None
