"""`hpctrain advise`."""

from pathlib import Path
from typing import Any

import click

from hpc_train.cli.options import path_option, results_option, site_option
from hpc_train.cli.output import show_warnings
from hpc_train.cli.report import show_report


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@site_option
@click.option(
    "--gpus", type=int, metavar="N", help="Largest number of GPUs (or ranks) to consider."
)
@click.option("--deadline", metavar="TIME", help="Longest time of the training, e.g. 24h.")
@click.option("--budget", metavar="HOURS", help="Most GPU-hours, e.g. 500GPUh.")
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="KEY=VALUE",
    help="A fact of the program: parameters=7B, flops_per_sample, global_batch, batch, steps, "
    "precision, optimizer, checkpointing, accumulate.",
)
@click.option(
    "--measured",
    multiple=True,
    metavar="RESULT",
    help="Results of this program: a study, run, log or table, as for `hpctrain report`.",
)
@click.option(
    "--program",
    metavar="MODULE:FUNCTION",
    help="Count parameters, FLOP and activations of the model that this function returns.",
)
@results_option
@click.option("-f", "--format", "form", help="text (default), markdown, csv, json, html or latex.")
@path_option("-o", "--output", help="A file: .html, .md, .csv, .json …", stdout=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def advise(
    file: Path,
    site: str | None,
    results: Path,
    form: str | None,
    output: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Advise whether to distribute a training, how, and on how many GPUs.

    FILE is a job or study. Each strategy and size has a row: the memory of a rank, the bytes that
    it sends, and the time of a step between two bounds. Nothing is submitted.
    """
    from hpc_train.reports.advise import AdviceOptions, advice_of
    from hpc_train.reports.write_report import check_format

    form = "json" if as_json else form
    check_format(form, output)
    show_warnings()
    options = AdviceOptions(results=results, **asked)
    _, report = advice_of(file, site, options)
    show_report(report, form, output)
