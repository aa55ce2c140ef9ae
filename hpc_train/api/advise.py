"""Whether to distribute a training, how, and on how many GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from hpc_train.api.arguments import AnyPath, Name, checked, path_of, results_of, texts_of
from hpc_train.api.report import WrittenReport
from hpc_train.reports.advise import AdviceOptions, advice_of

if TYPE_CHECKING:
    from hpc_train.advice.advice import Advice, AdviceRow
    from hpc_train.reports.report import Report


class AdviceReport(WrittenReport):
    """Advice on a program and a machine: a row for each strategy and size."""

    def __init__(self, advice: Advice, report: Report) -> None:
        self._advice = advice
        super().__init__(report)

    @property
    def advice(self) -> Advice:
        """The rows, what is recommended, what cannot run, and what is missing."""
        return self._advice

    @property
    def recommended(self) -> AdviceRow | None:
        """The row with the fewest GPUs that fits, in time and within the budget; None: none."""
        found = (row for row in self._advice.rows if row.verdict == "recommended")
        return next(found, None)


def advise(
    file: AnyPath,
    *,
    site: str | None = None,
    gpus: int | None = None,
    deadline: str | None = None,
    budget: str | None = None,
    conditions: Mapping[str, object] | None = None,
    measured: AnyPath | Iterable[AnyPath] = (),
    program: str | None = None,
    results: AnyPath | None = None,
) -> AdviceReport:
    """Return the advice on a job or study file, as `hpctrain advise` does; submits nothing.

    `deadline` and `budget` are texts such as `24h` and `500GPUh`; `conditions` facts of the program
    (`{"parameters": 7e9}`); `measured` earlier results, by default those of the same name;
    `program` a function `module:function` that returns the model.

    Raises:
        ArgumentError: an argument of a wrong type.
        HpcTrainError: the file, the site, a condition, the program or an earlier result is wrong.
        MissingExtraError: earlier results without pandas, or a program without torch.
    """
    stated = checked(conditions, dict[str, Any] | None, "conditions") or {}
    options = AdviceOptions(
        gpus=checked(gpus, Annotated[int, msgspec.Meta(ge=1)] | None, "gpus"),
        deadline=checked(deadline, Name | None, "deadline"),
        budget=checked(budget, Name | None, "budget"),
        conditions=tuple(f"{key}={value}" for key, value in stated.items()),
        measured=tuple(texts_of(measured, "measured")) if measured else (),
        program=checked(program, Name | None, "program"),
        results=results_of(results),
    )
    return AdviceReport(*advice_of(path_of(file, "file"), site, options))
