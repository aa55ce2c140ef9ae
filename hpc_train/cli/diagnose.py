"""`hpctrain diagnose`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import asdict

from hpc_train.base.plain_text import plain, plain_json
from hpc_train.cli.options import results_option, runs_or_files
from hpc_train.cli.output import busy, echo_table, show_warnings

if TYPE_CHECKING:
    from hpc_train.diagnosis.diagnose_runs import Diagnosed
    from hpc_train.diagnosis.diagnosis import Diagnosis, LogFinding


@click.command()
@click.argument("words", metavar="RUN|LOG…", nargs=-1, shell_complete=runs_or_files)
@results_option
@click.option("--one-job", is_flag=True, help="Treat all LOGs as one job.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all findings.")
@click.option("--benign", is_flag=True, help="Also show harmless findings.")
@click.option(
    "--list",
    "as_list",
    is_flag=True,
    help="List the known failures, or explain some by id.",
)
def diagnose(
    words: tuple[str, ...],
    results: Path,
    one_job: bool,
    as_json: bool,
    benign: bool,
    as_list: bool,
) -> None:
    """Print why a run, or the job of any log files, failed: the root cause first.

    RUN is a run, or a job or study whose runs are all diagnosed. Several LOGs are several jobs,
    except the files of the ranks of one run, and standard output and standard error of one job.
    Exit code 0: logs were read, regardless of the outcome; 2: no log can be read; 3: some cannot.
    """
    from hpc_train.diagnosis.diagnose_runs import diagnose as diagnose_words

    if as_list:
        return _print_failures(words, as_json)
    if not words:
        raise click.UsageError("name a run or log files, or --list")
    show_warnings()
    with busy("reading logs"):
        diagnosed = diagnose_words(words, results, one_job=one_job)
    if as_json:
        _print_json(diagnosed)
    else:
        _print_text(diagnosed, benign=benign)
    if any(one.unreadable for one in diagnosed):
        sys.exit(3)


def _print_text(diagnosed: Sequence[Diagnosed], *, benign: bool) -> None:
    from hpc_train.diagnosis.diagnosis import diagnosis_lines, transport_lines

    for number, one in enumerate(diagnosed):
        if len(diagnosed) > 1:
            click.echo(plain(f"{chr(10) * (number > 0)}== {one.name}"))
        for line in (
            *diagnosis_lines(one.diagnosis, benign=benign),
            *transport_lines(one.transport),
        ):
            click.echo(line)


def _print_json(diagnosed: Sequence[Diagnosed]) -> None:
    """Print the diagnosis of a job, or all findings of several jobs, with each job under `runs`."""

    rows = [_row(one) for one in diagnosed]
    if len(rows) == 1:
        answer = rows[0]
    else:
        outcomes = {row["outcome"] for row in rows}
        worst = next(word for word in ("failed", "unknown", "success") if word in outcomes)
        findings = [{"run": row["run"], **one} for row in rows for one in row["findings"]]
        answer = {"outcome": worst, "findings": findings, "transport": None, "runs": rows}
    click.echo(plain_json(msgspec.json.encode({"schema": 1, **answer})))


def _row(one: Diagnosed) -> dict[str, Any]:
    diagnosis = one.diagnosis
    return {
        "run": one.name,
        "outcome": diagnosis.outcome,
        "why": diagnosis.why,
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "transport": one.transport,
        "first_failure": diagnosis.first_failure,
        "last_words": diagnosis.last_lines,
        "attempts": _attempts(diagnosis),
        "unreadable": one.unreadable,
    }


def _finding(finding: LogFinding) -> dict[str, Any]:
    head = {name: getattr(finding, name) for name in ("id", "group", "severity", "role", "title")}
    texts = {"cause": finding.message, "advice": finding.advice}
    return {**head, **texts, "evidence": finding.evidence, "count": finding.count}


def _attempts(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Return a row for each attempt in a log, the diagnosed one last; none for a single attempt."""

    if not diagnosis.earlier:
        return []
    root = diagnosis.root
    last = {"outcome": diagnosis.outcome, "why": diagnosis.why, "line": diagnosis.line}
    named = {"id": root.id if root else None, "title": root.title if root else None}
    return [*map(asdict, diagnosis.earlier), {**last, **named}]


def _print_failures(ids: tuple[str, ...], as_json: bool) -> None:

    from hpc_train.diagnosis.diagnose_runs import failures

    known = failures(ids)
    if as_json:
        names = ("id", "group", "severity", "role", "title", "cause", "advice", "example", "origin")
        rows = [{name: getattr(one, name) for name in names} for one in known]
        click.echo(msgspec.json.encode({"schema": 1, "signatures": rows}))
    elif ids:
        for one in known:
            click.echo(f"{one.id} {one.severity}: {one.title}")
            click.echo(f"    {one.cause}\n    {one.advice}")
            click.echo("".join(f"    | {line}\n" for line in one.example.splitlines()), nl=False)
    else:
        cells = [(one.id, one.group, one.severity, one.origin, one.title) for one in known]
        echo_table(("id", "group", "severity", "from", "what happened"), cells)
