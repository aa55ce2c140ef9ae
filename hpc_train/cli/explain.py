"""`hpctrain explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.group import JobCommand
from hpc_train.cli.options import job_options, prepare_and_warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpc_train.pipeline.explain import Explained


@click.command(cls=JobCommand)
@job_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    file: Path, arguments: tuple[str, ...], site: str | None, as_json: bool, **given: Any
) -> None:
    """Print every setting, directive, variable and argument: value, origin, why.

    Of a study, the first point is explained.
    """
    from hpc_train.cli.output import echo_table
    from hpc_train.pipeline.explain import explain as explain_plan
    from hpc_train.pipeline.explain import text_of

    prepared = prepare_and_warn(file, arguments, site, given)
    items = explain_plan(prepared.points[0].plan, prepared.site)
    if as_json:
        click.echo(_json(items))
        return
    if prepared.study is not None:
        click.echo(f"{prepared.points[0].stem}: the first of {len(prepared.points)} points")
    for number, kind in enumerate(dict.fromkeys(item.kind for item in items)):
        if number:
            click.echo()
        rows = [
            (item.name, text_of(item.value), item.origin, _why(item))
            for item in items
            if item.kind == kind
        ]
        echo_table((kind, "value", "origin", "why"), rows)


def _why(item: Explained) -> str:
    references = ", ".join(filter(None, (item.trap, item.source)))
    return f"{item.why} ({references})" if references and item.why else item.why or references


def _json(items: Sequence[Explained]) -> bytes:
    import msgspec

    from hpc_train.model.value import encode_unit

    rows = [
        {
            "kind": item.kind,
            "setting": item.name,
            "value": item.value,
            "origin": item.origin,
            "why": item.why,
            "trap": item.trap,
            "source": item.source,
        }
        for item in items
    ]
    return msgspec.json.encode(rows, enc_hook=encode_unit)
