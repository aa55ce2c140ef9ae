"""`hpctrain advise`."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train.cli.options import path_option, results_option, site_option
from hpc_train.cli.terminal import columns
from hpc_train.plain_text import plain, plain_json


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@site_option
@click.option("--gpus", type=int, metavar="N", help="Look at sizes up to so many GPUs (or ranks).")
@click.option("--deadline", metavar="TIME", help="The training must end within, e.g. 24h.")
@click.option("--budget", metavar="HOURS", help="Most GPU-hours, e.g. 500GPUh.")
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="KEY=VALUE",
    help="A fact of the program: parameters=7e9, flops_per_sample, global_batch, batch, steps, "
    "precision, optimizer, checkpointing, accumulate.",
)
@click.option(
    "--measured",
    multiple=True,
    metavar="RESULT",
    help="Results of this program: a study, run, log or table, as for `hpctrain report`.",
)
@results_option
@click.option("-f", "--format", "form", help="text (default), markdown, csv, json, html or latex.")
@path_option("-o", "--output", help="A file: .html, .md, .csv, .json …")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def advise(
    file: Path,
    site: str | None,
    gpus: int | None,
    deadline: str | None,
    budget: str | None,
    conditions: tuple[str, ...],
    measured: tuple[str, ...],
    results: Path,
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Advise whether to distribute a training, how, and on how many GPUs.

    FILE is a job or study. Each strategy and size has a row: the memory of a rank, the bytes that
    it sends, and the time of a step between two bounds. Nothing is submitted.
    """
    from hpc_train.cli.output import show_warnings
    from hpc_train.pipeline.advise import AdviceOptions, advice_on
    from hpc_train.pipeline.write_report import check_format, render_report, write_report

    form = "json" if as_json else form
    check_format(form, output)
    show_warnings()
    options = AdviceOptions(
        gpus=gpus,
        deadline=deadline,
        budget=budget,
        conditions=conditions,
        measured=measured,
        results=results,
    )
    report = advice_on(file, site, options)
    if output is None:
        safe = plain_json if form == "json" else plain
        click.echo(safe(render_report(report, form or "text", columns())), nl=False)
        return
    for path in write_report(report, output, form):
        click.echo(path)
