"""`hpctrain lab`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hpc_train.cli.output import busy, echo_table, say
from hpc_train.lab.settings import DEFAULT_FOLDER, Settings

if TYPE_CHECKING:
    from hpc_train.lab.state_file import Lab, LabState


@click.group()
def lab() -> None:
    """Run a Slurm cluster of several nodes on this machine."""


@lab.command()
@click.option("--nodes", type=click.IntRange(1, 200), default=4, show_default=True)
@click.option("--cpus", type=click.IntRange(1, 4096), default=8, show_default=True)
@click.option(
    "--mem",
    default="4000M",
    show_default=True,
    help="Memory of each node, as Slurm counts it; jobs may use more.",
)
@click.option(
    "--gpus",
    type=click.IntRange(0, 64),
    default=4,
    show_default=True,
    help="GPUs of each node; simulated.",
)
@click.option("--gpu-type", default="a100", show_default=True)
@click.option("--accounting", is_flag=True, help="With MariaDB and slurmdbd: sacct, accounts, QOS.")
@click.option("--dir", "folder", default=DEFAULT_FOLDER, show_default=True, help="State and logs.")
def up(**options: Any) -> None:
    """Start the lab and wait until its nodes are idle; needs root."""
    from hpc_train.lab import lab as labs

    begin = time.monotonic()
    with busy("starting the lab"):
        made, is_new = labs.up(options, say)
    click.echo(f"lab: {_summary(made.settings)}; {_took(begin, is_new)}")
    click.echo(f"Slurm: {made.slurm_version}")
    click.echo(f"profile: {made.profile}")
    _echo_next(made.settings)


def _took(begin: float, is_new: bool) -> str:
    return f"started in {time.monotonic() - begin:.1f} s" if is_new else "already running"


@lab.command()
def down() -> None:
    """Stop the lab and its jobs, and remove its files and namespaces."""
    from hpc_train.lab import lab as labs

    with busy("stopping the lab"):
        gone = labs.down()
    click.echo(f"the lab in {gone} was stopped" if gone else "there is no lab")


@lab.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Print the lab's nodes and jobs, how to use it, and the running twins of sites."""
    from hpc_train.lab.state_file import read, state_of
    from hpc_train.lab.twins.start_and_stop import read_all

    found, running = read(), read_all()
    state = state_of(found) if found else None
    if as_json:
        listed = [
            {"site": one.name, "env_file": one.env, "assumptions": one.assumptions}
            for one in running
        ]
        answer = _as_json(found, state) if found and state else {"up": False}
        click.echo(msgspec.json.encode({"schema": 1, **answer, "twins": listed}))
        return
    if found and state:
        _echo_state(found, state)
    else:
        click.echo("there is no lab; start one with: hpctrain lab up")
    for one in running:
        click.echo(f"twin of {one.name}: source {one.env}")
        _echo_assumptions(one.assumptions)


@lab.command()
@click.argument("site", required=False)
@click.option("--down", "ends", is_flag=True, help="Stop the twin, or all twins.")
def twin(site: str | None, ends: bool) -> None:
    """Start the twin of SITE (name or file of a profile): a slurmctld without nodes; needs root.

    Without SITE, list the running twins.
    """
    from hpc_train.lab.twins.start_and_stop import read_all

    running = read_all()
    if ends:
        _end_twins((site,) if site else tuple(one.name for one in running))
    elif site:
        _start_twin(site)
    else:
        for one in running:
            click.echo(f"{one.name}: source {one.env}")
        if not running:
            click.echo("no twin is running; next: hpctrain lab twin SITE", err=True)


def _start_twin(site: str) -> None:
    from hpc_train.lab.twins.start_and_stop import start
    from hpc_train.sites.load import load_site

    begin = time.monotonic()
    with busy("starting the twin"):
        made, is_new = start(load_site(site).value)
    accounting = "with" if made.place.dbd_port else "without"
    click.echo(f"twin of {made.name}: {accounting} accounting; {_took(begin, is_new)}")
    _echo_assumptions(made.assumptions)
    click.echo(f"next: source {made.env}; sbatch --test-only FILE.sbatch")


def _echo_assumptions(found: tuple[str, ...]) -> None:
    if found:
        click.echo("assumptions, where the profile states nothing:")
    for one in found:
        click.echo(f"  {one}")


def _end_twins(names: tuple[str, ...]) -> None:
    from hpc_train.lab.twins.start_and_stop import stop

    for name in names:
        with busy("stopping the twin"):
            stopped = stop(name)
        name = name.rpartition("/")[2].removesuffix(".yaml")
        click.echo(f"the twin of {name} was stopped" if stopped else f"{name} has no twin")
    if not names:
        click.echo("there is no twin")


def _summary(settings: Settings) -> str:
    gpus = f", {settings.gpus} {settings.gpu_type}" if settings.gpus else ""
    accounting = "accounting" if settings.accounting else "no accounting"
    nodes = f"{settings.nodes} node{'s' if settings.nodes > 1 else ''}"
    return (
        f"{nodes} of {settings.cpus} cores, {settings.mem}{gpus}; "
        f"eth0 {settings.eth0_rate}, ib0 unshaped; {accounting}"
    )


def _as_json(found: Lab, state: LabState) -> dict[str, Any]:
    """Return the settings and the state of a lab."""
    made = found.settings
    settings = {name: getattr(made, name) for name in made.__struct_fields__}
    return {
        "up": not state.faults,
        "faults": state.faults,
        "slurm_version": found.slurm_version,
        "settings": {**settings, "mem": str(made.mem)},
        "slurm_conf": f"{made.folder}/slurm.conf",
        "env_file": f"{made.folder}/env",
        "profile": found.profile,
        "nodes": [{"name": name, "state": word} for name, word in state.nodes.items()],
        "jobs": state.jobs,
    }


def _echo_next(settings: Settings) -> None:
    click.echo(f"Slurm's commands: source {settings.folder}/env; sinfo")
    click.echo("next: hpctrain submit FILE --site lab")


def _echo_state(found: Lab, state: LabState) -> None:

    click.echo(f"lab: {_summary(found.settings)}")
    click.echo(f"Slurm: {found.slurm_version}")
    for fault in state.faults:
        click.echo(f"broken: {fault}; `hpctrain lab up` restarts the lab")
    if state.nodes:
        echo_table(("node", "state"), list(state.nodes.items()))
    if state.jobs:
        rows = [(job["id"], job["state"].lower(), job["nodes"], job["name"]) for job in state.jobs]
        echo_table(("job", "state", "nodes", "name"), rows)
    if not state.faults:
        _echo_next(found.settings)
