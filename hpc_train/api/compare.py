"""Two results, compared point by point."""

from __future__ import annotations

from collections.abc import Iterable

from hpc_train.api.arguments import AnyPath, Number, checked, text_of, texts_of
from hpc_train.api.report import WrittenReport, search_of
from hpc_train.base.extras import need
from hpc_train.reports.compare import ComparedReport, compare as compare_sides


class Comparison(WrittenReport):
    """B compared with A: ratios with intervals and verdicts, and the settings that differ."""

    def __init__(self, compared: ComparedReport) -> None:
        self._undecided = compared.undecided
        super().__init__(compared.report)

    @property
    def undecided(self) -> tuple[str, ...]:
        """A sentence for each point without a verdict."""
        return self._undecided


def compare(
    a: AnyPath,
    b: AnyPath,
    *,
    results: AnyPath | None = None,
    parser: str = "auto",
    points: AnyPath | None = None,
    min_effect: float | None = None,
    allow_mixed: AnyPath | Iterable[str] = (),
    allow_failed: bool = False,
) -> Comparison:
    """Compare two results at each point, as `hpctrain compare` does; `b` is compared with `a`.

    Each is an input of `report`, a report as JSON, or runs of a study that share a value, as
    `STUDY:launcher=srun`. `min_effect` is the smallest difference that counts, 0.02 for 2 %.

    Raises:
        ArgumentError: an argument of a wrong type or value.
        HpcTrainError: a side does not exist, is empty, or has no selected run.
        MissingExtraError: pandas, scipy or matplotlib is not installed.
    """
    need("hpc_train.compare", "report")
    search = search_of(results, parser, points, allow_failed)
    effect = checked(min_effect, Number | None, "min_effect")
    mixed = tuple(texts_of(allow_mixed, "allow_mixed")) if allow_mixed else ()
    return Comparison(compare_sides(text_of(a, "a"), text_of(b, "b"), search, effect, mixed))
