"""`hpctrain report`, `compare` and `collect`."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from hpc_train.base.errors import StoreError
from hpc_train.base.plain_text import plain, plain_json
from hpc_train.cli.options import path_option, pattern_options, results_option, runs_or_files
from hpc_train.cli.output import busy, say, show_warnings

if TYPE_CHECKING:
    from hpc_train.jobs.log_selection import Search, StatedScope
    from hpc_train.reports.collect import Collection
    from hpc_train.reports.report import Report, ReportOptions


def show_report(
    report: Report, form: str | None, output: Path | None, *, first_screen: bool = False
) -> None:
    """Print a report in a format (default: text), or write it and print the paths.

    `first_screen` leaves notes, provenance and further tables out of text on stdout.
    """
    from hpc_train.reports.write_report import render_report, write_report

    if output is None:
        safe = plain_json if form == "json" else plain
        shown = render_report(report, form or "text", columns(), first_screen=first_screen)
        click.echo(safe(shown), nl=False)
        return
    for path in write_report(report, output, form):
        click.echo(path)


# Of a report if stdout is no terminal and $COLUMNS is not set; narrower is not readable.
WIDTH, LEAST = 100, 40


def columns() -> int:
    """Return the width of a report: $COLUMNS, else that of the terminal, else 100."""
    # `hpctrain --help` does not need it.
    import shutil

    return max(LEAST, shutil.get_terminal_size((WIDTH, 24)).columns)


NO_FIGURES = "--width and --no-title are for figures, and this output has none"


@click.command()
@click.argument(
    "words", metavar="STUDY|PATH…", nargs=-1, required=True, shell_complete=runs_or_files
)
@results_option
@click.option(
    "-f",
    "--format",
    "form",
    help="text (default), markdown, csv, json, html, latex or tidy.",
)
@path_option(
    "-o",
    "--output",
    help="A file: .html, .md (figures beside it), .csv, .svg … No extension: a folder for all.",
    stdout=True,
)
@click.option(
    "--parser",
    default="auto",
    show_default=True,
    help="One format of logs: collect --list; or table, for a table of results on stdin.",
)
@pattern_options
@click.option(
    "--scaling",
    type=click.Choice(("strong", "weak")),
    help="The same global batch at every size (strong), or the same batch per rank (weak).",
)
@click.option(
    "--batch",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SAMPLES",
    help="Samples in a step of all ranks, if no run prints them; with --scaling weak, of a rank.",
)
@click.option(
    "--rates",
    type=click.Choice(("job", "rank")),
    help="Whether rates without a scope are of the job or of each rank.",
)
@click.option(
    "--check", is_flag=True, help="Exit with 1 if a gate is not met or a point has no result."
)
@click.option("--notes", is_flag=True, help="Also notes, provenance, and every table.")
@click.option("--wide", is_flag=True, help="All columns, not only those that fit the terminal.")
@click.option("--width", metavar="LENGTH", help="Width of the figures on paper: 3.3in, 84mm.")
@click.option("--no-title", is_flag=True, help="Figures without a title, for a caption below them.")
@click.option("--gpus", metavar="N,…", help="GPUs of each foreign log, in the order of the logs.")
@click.option("--nodes", metavar="N,…", help="Nodes of each log, likewise.")
@click.option("--ranks", metavar="N,…", help="Ranks of each log, if not one for each GPU.")
@click.option(
    "--points", type=click.Path(path_type=Path), help="YAML: log -> nodes, gpus_per_node …"
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="RUN=REASON",
    help="Exclude a run; it is shown with the reason.",
)
@click.option(
    "--allow-mixed",
    multiple=True,
    metavar="FIELD",
    help="Allow runs of a series to differ in FIELD.",
)
@click.option("--allow-failed", is_flag=True, help="Also count logs that end in a failure.")
@click.option("--target", metavar="METRIC=VALUE", help="Report samples and time to a quality.")
@click.option("--against", metavar="STUDY|FILE", help="Regression gate: not slower than this.")
@path_option("--junit", help="Write the checks as JUnit XML.")
def report(
    words: tuple[str, ...],
    results: Path,
    form: str | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Report how a study, logs, records, or a CSV table scale.

    Exit code 1 with --check, if a gate or check is not met, and 2 if a gate cannot be read; 3 if a
    requested run has no result, or a log cannot be read. Columns, flags and files:
    hpctrain help reading-a-report.
    """
    from hpc_train.base.extras import need

    need("hpctrain report", "report")
    from hpc_train.reports.build import build_report
    from hpc_train.reports.gates import junit, verdicts_of, without_result
    from hpc_train.reports.report_inputs import report_inputs
    from hpc_train.reports.write_report import check_format
    from hpc_train.runs.json_files import write_file

    check_format(form, output)
    beside = (".md", ".csv", ".svg", ".png") if output and output.suffix == ".md" else ()
    written = {output, *(output.with_suffix(end) for end in beside)} if output else set()
    if lost := next((word for word in words if Path(word) in written), ""):
        raise click.UsageError(f"-o {output} would overwrite {lost}, which is read; name another")
    show_warnings()
    search = _search(results, options)
    report_options = _report_options(output, form, search, options)
    with busy("reading results"):
        inputs = report_inputs(words, search)
        built = build_report(inputs, report_options)
    if options["junit"] is not None:
        write_file(options["junit"], junit(built.name, verdicts_of(built)))
    short = form is None and not (options["notes"] or options["wide"])
    show_report(built, form, output, first_screen=short)
    # --check prints them itself.
    checks = () if options["check"] else built.checks
    missing = (built.summary[0], *checks) if without_result(built) else ()
    for text in (*inputs.warnings, *missing) if output is not None else ():
        say(text)
    if options["check"]:
        _check(built)
    if inputs.unreadable or without_result(built):
        sys.exit(3)


def _search(results: Path, options: Mapping[str, Any]) -> Search:

    from hpc_train.jobs.log_selection import Search
    from hpc_train.reports.collect import with_patterns
    from hpc_train.reports.report_inputs import exclusions, sizes_in_order

    search = Search(
        root=results,
        form=options["parser"],
        points=options["points"],
        excluded=exclusions(options["exclude"]),
        allow_failed=options["allow_failed"],
    )
    search = with_patterns(search, options["regexes"], options["scope"])
    stated = {name: options[name] for name in ("scaling", "batch", "rates")}
    sizes = sizes_in_order({name: options[name] for name in ("gpus", "nodes", "ranks")})
    return msgspec.structs.replace(search, sizes=sizes, **stated)


def _report_options(
    output: Path | None, form: str | None, search: Search, options: Mapping[str, Any]
) -> ReportOptions:

    from hpc_train.reports.report import SCREEN
    from hpc_train.reports.write_report import default_options, paper_of, target_of

    names = ("wide", "allow_mixed", "against")
    report_options = default_options(output, form)
    size = paper_of(options["width"], title=not options["no_title"])
    if size != SCREEN and not report_options.figures:
        raise StoreError(NO_FIGURES, "-o figure.pdf")
    return msgspec.structs.replace(
        report_options,
        search=search,
        target=target_of(options["target"]),
        paper=size,
        **{name: options[name] for name in names},
    )


def _check(built: Report) -> None:
    from hpc_train.reports.gates import checked_gates, open_checks, verdicts_of

    verdicts = verdicts_of(built)
    for line in (*built.checks, *open_checks(built), checked_gates(verdicts)):
        click.echo(plain(f"check: {line}"), err=True)
    if built.checks:
        sys.exit(2 if any(verdict.outcome == "error" for verdict in verdicts) else 1)


@click.command()
@click.argument("a", metavar="A", shell_complete=runs_or_files)
@click.argument("b", metavar="B", shell_complete=runs_or_files)
@results_option
@click.option("-f", "--format", "form", help="text (default), markdown, csv, json, html or latex.")
@path_option("-o", "--output", help="A file: .html, .md, .csv, .json …", stdout=True)
@click.option(
    "--parser", default="auto", show_default=True, help="One format of logs: collect --list."
)
@click.option(
    "--points", type=click.Path(path_type=Path), help="YAML: log -> nodes, gpus_per_node …"
)
@click.option(
    "--allow-mixed", multiple=True, metavar="FIELD", help="Compare points that differ in FIELD."
)
@click.option("--allow-failed", is_flag=True, help="Also count logs that end in a failure.")
@click.option(
    "--check",
    is_flag=True,
    help="Exit with 1 if B is worse, a value is implausible, or no point has a verdict.",
)
def compare(
    a: str,
    b: str,
    results: Path,
    form: str | None,
    output: Path | None,
    parser: str,
    points: Path | None,
    allow_mixed: tuple[str, ...],
    allow_failed: bool,
    check: bool,
) -> None:
    """Compare two results at each point, and list the settings that differ.

    A and B are any input of `hpctrain report`, or a report as JSON. Exit code 1 with --check, if B
    is worse or a value is implausible; 3 if a run of either side has no result. Verdicts:
    hpctrain help gates.
    """
    from hpc_train.base.extras import need

    need("hpctrain compare", "report")
    from hpc_train.jobs.log_selection import Search
    from hpc_train.reports.compare import compare as compared, undecided
    from hpc_train.reports.write_report import check_format

    check_format(form, output)
    show_warnings()
    search = Search(root=results, form=parser, points=points, allow_failed=allow_failed)
    with busy("reading results"):
        comparison = compared(a, b, search, allow_mixed)
    show_report(comparison, form, output)
    for line in (*comparison.checks, *undecided(comparison)) if check else ():
        click.echo(plain(f"check: {line}"), err=True)
    if check and comparison.checks:
        sys.exit(1)
    if comparison.partial:
        sys.exit(3)


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, shell_complete=runs_or_files)
@results_option
@path_option("-o", "--output", help="FILE.csv, .jsonl or .parquet.", stdout=True)
@click.option(
    "--format",
    "form",
    default="auto",
    show_default=True,
    help="One format of --list.",
)
@pattern_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per record.")
@click.option(
    "--list", "listing", is_flag=True, help="List the formats, or explain that of --format."
)
def collect(
    paths: tuple[str, ...],
    results: Path,
    output: Path | None,
    form: str,
    regexes: tuple[str, ...],
    scope: StatedScope,
    as_json: bool,
    listing: bool,
) -> None:
    """Print the measurements in the logs of runs and studies, or in any log files.

    Exit code 3 when some of the files cannot be read.
    """
    from hpc_train.jobs.log_selection import Search
    from hpc_train.reports.collect import check_ending, collection, formats_text, with_patterns

    if listing:
        click.echo(formats_text(form), nl=False)
        return
    if not paths:
        raise click.UsageError("name a log, a folder of logs, a run or a study")
    if output is not None:
        check_ending(output)
    search = Search(root=results, form=form)
    search = with_patterns(search, regexes, scope)
    # Up to the first record.
    with busy("reading logs"):
        found = collection(paths, search)
    _print(found, output, "jsonl" if as_json else "csv")


def _print(collection: Collection, output: Path | None, form: Literal["csv", "jsonl"]) -> None:
    from hpc_train.reports.collect import records_text, write_records

    show_warnings()
    is_silent = output is not None or _prints_to_file()
    said = busy(lambda: f"reading logs, {collection.counts.total()} records")
    with said if is_silent else nullcontext():
        if output is not None:
            write_records(collection.packs(), output)
        else:
            safe = plain_json if form == "jsonl" else plain
            for text in records_text(collection.packs(), form):
                click.echo(safe(text), nl=False)
    for line in collection.summary():
        click.echo(plain(line), err=True)
    if collection.stats.failed:
        sys.exit(3)


def _prints_to_file() -> bool:
    """Whether stdout is a file; a pipe may lead to a pager, which uses the terminal itself."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except OSError:
        return False
