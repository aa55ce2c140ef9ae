"""`hpctrain lab`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hpc_train.cli.output import busy, echo_table, say

if TYPE_CHECKING:
    from hpc_train.lab.settings import Settings
    from hpc_train.lab.state_file import Lab, LabState

# The same as in hpc_train.lab.settings, which is imported only by the commands.
_FOLDER = "/var/tmp/hpctrain-lab"  # noqa: S108 - root's own folder, checked before use


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
@click.option(
    "--eth0-rate", default="200mbit", show_default=True, help="Speed of the slow network."
)
@click.option("--accounting", is_flag=True, help="With MariaDB and slurmdbd: sacct, accounts, QOS.")
@click.option("--dir", "folder", default=_FOLDER, show_default=True, help="State and logs.")
def up(**options: Any) -> None:
    """Start the lab and wait until its nodes are idle; needs root."""
    from hpc_train.lab.lab import start_lab

    begin = time.monotonic()
    with busy("starting the lab"):
        result = start_lab(options, say)
    took = f"started in {time.monotonic() - begin:.1f} s" if result.is_new else "already running"
    click.echo(f"{result.lab.settings.name}: {_summary(result.lab.settings)}; {took}")
    click.echo(f"Slurm: {_slurm(result.lab)}")
    click.echo(f"profile: {result.lab.profile}")
    _echo_next(result.lab.settings)


@lab.command()
@click.option("--dir", "folder", help="The folder of the lab; default: the only lab.")
def down(folder: str | None) -> None:
    """Stop the lab and its jobs, and remove its files and namespaces."""
    from hpc_train.lab.lab import stop_lab

    with busy("stopping the lab"):
        gone = stop_lab(folder)
    click.echo(f"the lab in {gone} was stopped" if gone else "there is no lab")


@lab.command()
@click.option("--dir", "folder", help="The folder of the lab; default: every lab.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folder: str | None, as_json: bool) -> None:
    """Print the lab's nodes and jobs, how to use it, and the running twins of sites."""
    from hpc_train.lab.lab import lab_states, twins

    labs, running = lab_states(folder), twins()
    if as_json:
        listed = [
            {"site": name, "env_file": f"{one.folder}/env", "assumptions": one.assumptions}
            for name, one in running.items()
        ]
        first, *others = [_as_json(*lab) for lab in labs.values()] or [{"up": False}]
        more = {"labs": [first, *others]} if others else {}
        click.echo(msgspec.json.encode({"schema": 1, **first, **more, "twins": listed}))
        return
    if not labs:
        where = f" in {folder}" if folder else ""
        click.echo(f"there is no lab{where}; start one with: hpctrain lab up")
    for lab in labs.values():
        _echo_state(*lab)
    for name, one in running.items():
        click.echo(f"twin of {name}: source {one.folder}/env")
        _echo_assumptions(one.assumptions)


@lab.command()
@click.argument("site", required=False)
@click.option("--down", "ends", is_flag=True, help="Stop the twin, or all twins.")
def twin(site: str | None, ends: bool) -> None:
    """Start the twin of SITE (name or file of a profile): a slurmctld without nodes; needs root.

    Without SITE, list the running twins.
    """
    from hpc_train.lab.lab import twins

    if ends:
        _end_twins((site,) if site else tuple(twins()))
    elif site:
        _start_twin(site)
    else:
        found = twins()
        for name, one in found.items():
            click.echo(f"{name}: source {one.folder}/env")
        if not found:
            click.echo("no twin is running; next: hpctrain lab twin SITE", err=True)


def _start_twin(site: str) -> None:
    from hpc_train.lab.lab import start_twin

    begin = time.monotonic()
    with busy("starting the twin"):
        result = start_twin(site)
    took = f"started in {time.monotonic() - begin:.1f} s" if result.is_new else "already running"
    accounting = "with" if result.accounting else "without"
    click.echo(f"twin of {result.name}: {accounting} accounting; {took}")
    _echo_assumptions(result.assumptions)
    click.echo(f"next: source {result.folder}/env; sbatch --test-only FILE.sbatch")


def _echo_assumptions(found: tuple[str, ...]) -> None:
    if found:
        click.echo("assumptions, where the profile states nothing:")
    for one in found:
        click.echo(f"  {one}")


def _end_twins(names: tuple[str, ...]) -> None:
    from hpc_train.lab.lab import stop_twin

    for name in names:
        with busy("stopping the twin"):
            stopped = stop_twin(name)
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


def _slurm(lab: Lab) -> str:
    return f"{lab.slurm_version}, {lab.settings.slurm_prefix or 'of this system'}"


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
    env = f"source {settings.folder}/env"
    click.echo(f"Slurm's commands: {env}; sinfo")
    # Without it, hpctrain calls the Slurm on PATH, which may be older than the lab's.
    first = f"{env}; " if settings.slurm_prefix else ""
    click.echo(f"next: {first}hpctrain submit FILE --site {settings.name}")


def _echo_state(found: Lab, state: LabState) -> None:

    click.echo(f"{found.settings.name}: {_summary(found.settings)}")
    click.echo(f"Slurm: {_slurm(found)}")
    for fault in state.faults:
        click.echo(f"broken: {fault}; `hpctrain lab up` restarts the lab")
    if state.nodes:
        echo_table(("node", "state"), list(state.nodes.items()))
    if state.jobs:
        rows = [(job.id, job.state.lower(), job.nodes, job.name) for job in state.jobs]
        echo_table(("job", "state", "nodes", "name"), rows)
    if not state.faults:
        _echo_next(found.settings)
