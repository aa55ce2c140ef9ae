"""`hpctrain advise backend`."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train.cli.options import path_option, site_option
from hpc_train.cli.show_report import show_report


@click.command(short_help="Which backend of torch.distributed to use, and why.")
@site_option
@click.option("-f", "--format", "form", help="text (default), markdown, csv, json, html or latex.")
@path_option("-o", "--output", help="A file: .html, .md, .csv, .json …", stdout=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def backend(site: str | None, form: str | None, output: Path | None, as_json: bool) -> None:
    """Advise which backend of torch.distributed to use, on each device and network, and why.

    Needs no job. The rules are those of PyTorch; beside them is what `backend: auto` selects on
    the site, and which backends the torch of this environment has.
    """
    from hpc_train.cli.output import show_warnings
    from hpc_train.pipeline.advise_backend import advise_backend
    from hpc_train.pipeline.write_report import check_format

    form = "json" if as_json else form
    check_format(form, output)
    show_warnings()
    show_report(advise_backend(site), form, output)
