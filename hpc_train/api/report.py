"""Reports and comparisons: texts, the table, files; measurements in logs as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hpc_train.api.arguments import (
    AnyPath,
    Name,
    Number,
    checked,
    path_of,
    results_of,
    text_of,
    texts_of,
)
from hpc_train.api.display import Displayed, ShownText, image
from hpc_train.base.errors import ArgumentError
from hpc_train.base.extras import need
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.compare import compare as compare_sides, undecided
from hpc_train.reports.gates import open_checks, without_result
from hpc_train.reports.report import ReportOptions
from hpc_train.reports.report_inputs import ReportInputs, report_inputs, sizes_in_order
from hpc_train.reports.write_report import (
    check_format,
    default_options,
    render_report,
    target_of,
    write_report,
)

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.reports.report import Figure, Report


class WrittenReport(Displayed):
    """Texts, table and files of a report or a comparison."""

    def __init__(self, report: Report) -> None:
        self._report = report

    @property
    def title(self) -> str:
        """The title."""
        return self._report.title

    @property
    def summary(self) -> str:
        """The first lines of the report: the results with their conditions."""
        return ShownText("\n".join(self._report.summary))

    @property
    def table(self) -> pd.DataFrame:
        """One row per point, with the columns of `hpctrain report -f csv` and all digits.

        A ratio has three columns: `speedup`, `speedup_low`, `speedup_high`. Times in seconds; units
        and meaning of each column are in docs/reading-a-report.md.
        """
        from hpc_train.reports.csv_table import flat_rows
        from hpc_train.scaling.runs import row_frame

        return row_frame(flat_rows(self._report.tables[0]))

    @property
    def text(self) -> str:
        """The whole report as text, 100 characters wide."""
        return ShownText(render_report(self._report, "text"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats and explanations, one sentence each."""
        return self._report.notes

    @property
    def checks(self) -> tuple[str, ...]:
        """A sentence for each gate or check that is not met."""
        return self._report.checks

    @property
    def partial(self) -> bool:
        """Whether some requested runs have no result."""
        return self._report.partial

    def save(self, path: AnyPath, format: str | None = None) -> tuple[Path, ...]:
        """Write the report to a file, and return the paths that were written.

        The format follows the extension (.html, .md with figures beside it, .csv, .json, .tex,
        .txt, .svg, .png, .pdf, .parquet) unless `format` is given; a name without extension is a
        folder for all formats.

        Raises:
            ArgumentError: an argument of another type.
            StoreError: an unknown extension, or a file that cannot be written.
            UnknownNameError: no such format.
        """
        target = path_of(path, "path")
        form = checked(format, Name | None, "format")
        check_format(form, target)
        return write_report(self._built_for(target, form), target, form)

    def _built_for(self, path: Path, form: str | None) -> Report:
        return self._report

    def _shown(self) -> str:
        """Return the report as the command prints it, without notes and provenance."""
        return render_report(self._report, "text", first_screen=True)

    def __repr__(self) -> str:
        """Return the class and the title."""
        return f"<{type(self).__name__} {self.title!r}>"


_SCREEN = ("svg", "png", "pdf")


class ScalingReport(WrittenReport):
    """The report of a study, logs or a table."""

    def __init__(self, inputs: ReportInputs, options: ReportOptions) -> None:
        self._inputs = inputs
        self._options = options
        super().__init__(build_report(inputs, options))

    @property
    def runs(self) -> pd.DataFrame:
        """One row per requested run, also of failed and missing ones, with `state`, `problem`."""
        from hpc_train.reports.csv_table import flat_row
        from hpc_train.scaling.runs import row_frame

        return row_frame([flat_row(row) for row in self._report.run_rows])

    @cached_property
    def figures(self) -> tuple[ReportFigure, ...]:
        """The figures, the main one first, drawn at the first use; empty if no run has a result."""
        drawn = self._with(ReportOptions(figures=True, images=_SCREEN))
        return tuple(map(ReportFigure, drawn.figures))

    @property
    def open_checks(self) -> tuple[str, ...]:
        """A sentence for each point at which a gate is not decided."""
        return open_checks(self._report)

    @property
    def partial(self) -> bool:
        """Whether a requested run has no result, or a log cannot be read."""
        return bool(self._inputs.unreadable) or without_result(self._report)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the logs, and each file that cannot be read."""
        return (*self._inputs.warnings, *self._inputs.unreadable)

    def _built_for(self, path: Path, form: str | None) -> Report:
        return self._with(default_options(path, form))

    def _with(self, needed: ReportOptions) -> Report:
        """Return the same report with the figures and details that a format needs."""
        names = ("figures", "images", "main_figure_only", "details")
        changes = {name: getattr(needed, name) for name in names}
        return build_report(self._inputs, msgspec.structs.replace(self._options, **changes))


def report(
    paths: AnyPath | Iterable[AnyPath],
    *,
    results: AnyPath | None = None,
    parser: str = "auto",
    points: AnyPath | None = None,
    exclude: Mapping[str, str] | None = None,
    allow_mixed: AnyPath | Iterable[str] = (),
    allow_failed: bool = False,
    scaling: Literal["strong", "weak"] | None = None,
    batch: float | None = None,
    rates: Literal["job", "rank"] | None = None,
    gpus: int | Iterable[int] | None = None,
    nodes: int | Iterable[int] | None = None,
    ranks: int | Iterable[int] | None = None,
    target: str | None = None,
    against: AnyPath | None = None,
) -> ScalingReport:
    """Report how a study, logs, records, or a CSV table scale, as `hpctrain report` does.

    `paths`: one or several names or paths, runs or studies. The options are those of the command
    (docs/reading-a-report.md); `exclude` maps a run to the reason, `target` is `accuracy=0.93`,
    `gpus`, `nodes` and `ranks` are numbers in the order of the logs.

    Raises:
        ArgumentError: an argument of a wrong type or value.
        UnknownNameError, LogParseError: no such study, file or parser; logs that cannot be read.
        StoreError, ReportError: mixed studies, an unknown excluded run, contradictory runs.
        MissingExtraError: pandas, scipy or matplotlib is not installed.
    """
    need("hpc_train.report", "report")
    search = msgspec.structs.replace(
        search_of(results, parser, points, allow_failed, exclude),
        scaling=checked(scaling, Literal["strong", "weak"] | None, "scaling"),
        batch=checked(batch, Number | None, "batch"),
        rates=checked(rates, Literal["job", "rank"] | None, "rates"),
        sizes=sizes_in_order({"gpus": _list(gpus), "nodes": _list(nodes), "ranks": _list(ranks)}),
    )
    options = ReportOptions(
        search=search,
        allow_mixed=tuple(texts_of(allow_mixed, "allow_mixed")) if allow_mixed else (),
        target=None if target is None else target_of(text_of(target, "target")),
        against=None if against is None else text_of(against, "against"),
    )
    return ScalingReport(report_inputs(texts_of(paths, "paths"), search), options)


def _list(numbers: int | Iterable[int] | None) -> str | None:
    """Return the numbers as the command line takes them."""
    given = numbers if isinstance(numbers, Iterable) else [numbers]
    return None if numbers is None else ",".join(map(str, given))


def search_of(
    results: AnyPath | None,
    parser: str,
    points: AnyPath | None,
    allow_failed: bool,
    exclude: Mapping[str, str] | None = None,
) -> Search:
    """Return which runs and logs are read.

    Raises:
        ArgumentError: an argument of a wrong type, or an exclusion without a reason.
    """
    excluded = checked(exclude, dict[str, Any] | None, "exclude") or {}
    for run, reason in excluded.items():
        if not isinstance(reason, str) or not reason.strip():
            raise ArgumentError(
                f"exclude[{run!r}]: the reason is missing", 'exclude={"1-srun-r2": "node 3 down"}'
            )
    return Search(
        root=results_of(results),
        form=text_of(parser, "parser"),
        points=None if points is None else path_of(points, "points"),
        excluded=dict(excluded),
        allow_failed=checked(allow_failed, bool, "allow_failed"),
    )


class ReportFigure(Displayed):
    """One figure of a report."""

    def __init__(self, figure: Figure) -> None:
        self._figure = figure

    @property
    def name(self) -> str:
        """The name of its files."""
        return self._figure.name

    @property
    def caption(self) -> str:
        """What it shows."""
        return self._figure.caption

    @property
    def png(self) -> bytes:
        """The image as PNG."""
        return self._figure.images["png"]

    @property
    def svg(self) -> str:
        """The image as SVG."""
        return self._figure.images["svg"].decode()

    def _shown(self) -> str:
        return f"[figure: {self.caption}]"

    def _html(self) -> str:
        return image(self.caption, self.png)

    def __repr__(self) -> str:
        """Return the class and the name."""
        return f"ReportFigure({self.name!r})"


class Comparison(WrittenReport):
    """B compared with A: ratios with intervals and verdicts, and the settings that differ."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """A sentence for each point without a verdict."""
        return undecided(self._report)


def compare(
    a: AnyPath,
    b: AnyPath,
    *,
    results: AnyPath | None = None,
    parser: str = "auto",
    points: AnyPath | None = None,
    allow_mixed: AnyPath | Iterable[str] = (),
    allow_failed: bool = False,
) -> Comparison:
    """Compare two results at each point, as `hpctrain compare` does; `b` is compared with `a`.

    Each is an input of `report`, or a report as JSON.

    Raises:
        ArgumentError: an argument of a wrong type or value.
        HpcTrainError: a side does not exist, or is empty.
        MissingExtraError: pandas, scipy or matplotlib is not installed.
    """
    need("hpc_train.compare", "report")
    search = search_of(results, parser, points, allow_failed)
    mixed = tuple(texts_of(allow_mixed, "allow_mixed")) if allow_mixed else ()
    return Comparison(compare_sides(text_of(a, "a"), text_of(b, "b"), search, mixed))


def collect(
    paths: AnyPath | Iterable[AnyPath] = (), form: str = "auto", *, results: AnyPath | None = None
) -> pd.DataFrame:
    """Return the measurements in logs, one row each: of runs and studies, or of any log files.

    Columns: run, source (file), line, parser, metric, value, unit, scope (`global`, `per_gpu`,
    `per_rank`), step, rank, node, steps (of how many the value is the mean), message_size [B] and
    variant. Units are those of `hpc_train.base.metrics.UNITS`: seconds, samples or tokens per s,
    GiB, GB/s (10^9), fractions for accuracy and MFU. `form` names one parser instead of all,
    `results` the folder of all results. `frame.attrs["unreadable"]` lists files with errors.

    Raises:
        HpcTrainError: no such file or parser, none of the files can be read, or no line of them.
        MissingExtraError: pandas is not installed.
    """
    need("hpc_train.collect", "report", only=("pandas",))
    from hpc_train.foreign.parquet import records_frame
    from hpc_train.reports.collect import collection

    search = Search(root=results_of(results), form=text_of(form, "form"))
    found = collection(texts_of(paths, "paths"), search)
    frame = records_frame(found.packs())
    frame.attrs["unreadable"] = list(found.stats.failed.values())
    return frame
