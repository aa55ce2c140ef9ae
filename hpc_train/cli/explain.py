"""`hpctrain explain`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.options import job_options, prepare_and_warn

if TYPE_CHECKING:
    from hpc_train.model.plan import Setting


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
    settings = prepared.points[0].plan.settings
    if as_json:
        click.echo(_json(settings))
        return
    if prepared.study is not None:
        click.echo(f"{prepared.points[0].stem}: the first of {len(prepared.points)} points")
    rows = [(name, _shown(s.value), s.origin, _reason(s)) for name, s in settings.items()]
    echo_table(("setting", "value", "origin", "why"), rows)


def _json(settings: dict[str, Setting]) -> bytes:
    import msgspec

    from hpc_train.model.value import encode_unit

    rows = [
        {"setting": name, "value": s.value, "origin": s.origin, "why": s.why}
        | ({"source": s.source} if s.source else {})
        for name, s in settings.items()
    ]
    return msgspec.json.encode(rows, enc_hook=encode_unit)


def _reason(setting: Setting) -> str:
    return f"{setting.why} ({setting.source})".strip() if setting.source else setting.why


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return shlex.join(value)
    return "--" if value is None else str(value)
