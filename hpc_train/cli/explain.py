"""`hpctrain explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.options import job_options, prepare_and_warn

if TYPE_CHECKING:
    from hpc_train.pipeline.prepare import PreparedPoint


@click.command()
@job_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    file: Path, arguments: tuple[str, ...], site: str | None, as_json: bool, **given: Any
) -> None:
    """Print every setting: its value, where it comes from, and why.

    Of a study, the first point is explained.
    """
    from hpc_train.cli.output import echo_table

    prepared = prepare_and_warn(file, arguments, site, given)
    rows = _rows(prepared.points[0])
    if as_json:
        import msgspec

        keys = ("setting", "value", "origin", "why")
        click.echo(msgspec.json.encode([dict(zip(keys, row, strict=True)) for row in rows]))
        return
    if prepared.study is not None:
        click.echo(f"{prepared.points[0].stem}: the first of {len(prepared.points)} points")
    echo_table(("setting", "value", "origin", "why"), rows)


def _rows(point: PreparedPoint) -> list[tuple[str, str, str, str]]:
    return [
        (name, "--" if s.value is None else str(s.value), s.origin, s.why)
        for name, s in point.plan.settings.items()
    ]
