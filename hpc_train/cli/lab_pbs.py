"""`hpctrain lab up --pbs` and `lab down --pbs`."""

from __future__ import annotations

from typing import Any

import click

from hpc_train.cli.kind_of_lab import stated


def start_small_pbs(context: click.Context, given: dict[str, Any]) -> None:
    """Start the small PBS, and print how to use it; `context` is that of `lab up`."""
    from hpc_train.cli.busy import busy
    from hpc_train.pipeline.lab import start_pbs

    folder = given["folder"] if "folder" in stated(context) else None
    with busy("starting the small PBS"):
        result = start_pbs({**given, "folder": folder})
    size, place = result.pbs.size, result.pbs.folder
    nodes = f"{size.nodes} node{'s' if size.nodes > 1 else ''}"
    state = "started" if result.is_new else "already running"
    click.echo(f"small PBS: {nodes} of {size.ncpus} cores, all on this machine; {state}")
    click.echo(f"profile: {result.pbs.profile}")
    click.echo(f"PBS's commands: source {place}/env; qstat")
    click.echo(f"next: source {place}/env; hpctrain submit FILE --site lab-pbs")


def stop_small_pbs(folder: str | None) -> None:
    """Stop the small PBS in a folder, or that of the user."""
    from hpc_train.cli.busy import busy
    from hpc_train.pipeline.lab import stop_pbs

    with busy("stopping the small PBS"):
        gone = stop_pbs(folder)
    click.echo(f"the small PBS in {gone} was stopped" if gone else "there is no small PBS")
