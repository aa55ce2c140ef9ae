"""`hpctrain bench`: the collectives of torch.distributed, and the strategies of training."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.follow_runs import follow
from hpc_train.cli.options import prepare_and_warn, results_option, setting_options, site_option
from hpc_train.cli.output import say
from hpc_train.cli.render import echo_scripts
from hpc_train.cli.submit import announce, start
from hpc_train.jobs.collectives import COLLECTIVES, DTYPES, collective_name
from hpc_train.jobs.strategies import STRATEGIES

if TYPE_CHECKING:
    from hpc_train.scripts.prepare import Prepared


@click.command()
@click.option(
    "--steps",
    type=click.IntRange(min=10),
    default=30,
    show_default=True,
    help="Steps of each run.",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    type=click.Choice(STRATEGIES),
    metavar="NAME",
    help="One strategy; can be repeated. Default: all.",
)
@click.option("--dry-run", is_flag=True, help="Print the scripts and run nothing.")
@results_option
@site_option
@setting_options
def train(
    steps: int,
    strategies: tuple[str, ...],
    dry_run: bool,
    results: Path,
    site: str | None,
    **given: Any,
) -> None:
    """Compare the strategies of training on this machine.

    Each strategy trains the same small GPT on 1, 2, 4 and 8 GPUs or, without GPUs, cores, as far as
    there are so many. What cannot run is listed with the reason. The output is the report of the
    study.
    """
    from hpc_train.base.data_folders import strategies_study
    from hpc_train.base.extras import need
    from hpc_train.cli.report import report
    from hpc_train.submissions.bench import check_this_machine, train_overrides

    for extra in ("report", "torch"):
        need("hpctrain bench train", extra)
    own = train_overrides(results, strategies, steps)
    prepared = prepare_and_warn(strategies_study(), (), site, given, starts=not dry_run, own=own)
    if dry_run:
        echo_scripts(prepared)
        return
    check_this_machine(prepared)
    done = start(prepared, results)
    code = follow(done.home, done)
    if code != 130:
        words = [done.home.name, "--results", str(results)]
        with report.make_context("report", words, click.get_current_context()) as context:
            report.invoke(context)
    sys.exit(code)


_BACKENDS = ("auto", "gloo", "nccl", "mpi")


class BenchGroup(click.Group):
    """`train`, and a command for each collective, by any of its names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names; those of collectives as MPI has them."""
        return [*COLLECTIVES, "train"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of `all_reduce`, `allreduce`, ..."""
        if cmd_name == "train":
            return train
        name = collective_name(cmd_name)
        return collective_command(name) if name else None


@click.group(cls=BenchGroup)
def bench() -> None:
    """Measure the collectives of torch.distributed, as nccl-tests does.

    `train` compares the strategies of training instead. The ranks run on this machine or as a job
    of a site. The output is the table of nccl-tests, with its definitions of algbw and busbw. On
    this machine the command waits for the table; on a cluster it does so with --wait.
    """


def collective_command(name: str) -> click.Command:
    """Return the command that measures a collective, with options of nccl-tests and `submit`."""
    several, any_number = click.IntRange(min=1), click.IntRange(min=0)
    wait = "Follow the job to its end and print the table. Default: on this machine only."
    command: Callable[..., None] = partial(_bench, name)
    for option in (
        click.option("--backend", type=click.Choice(_BACKENDS), default="auto"),
        click.option("--check/--no-check", default=True, help="Count wrong elements (default)."),
        click.option("-r", "--root", type=any_number, default=0, help="Sender of broadcast."),
        click.option("-d", "--dtype", type=click.Choice(list(DTYPES)), default="float"),
        click.option("-w", "--warmup", type=any_number, default=5, help="Untimed calls."),
        click.option("-n", "--iterations", type=several, default=20, help="Timed calls."),
        click.option("-f", "--factor", type=several, default=4, help="Next size / size."),
        click.option("-e", "--largest", metavar="SIZE", default="64M", help="E.g. 8G."),
        click.option("-b", "--smallest", metavar="SIZE", default="1K", help="E.g. 8, 64K."),
        click.option("--dry-run", is_flag=True, help="Print the script and submit nothing."),
        click.option("--wait/--no-wait", default=None, help=wait),
        results_option,
        site_option,
        partial(setting_options, letters=False),
        click.option("--ranks", metavar="N", help="Ranks on each node, as --tasks-per-node."),
    ):
        command = option(command)
    return click.command(name, help=f"Measure {name}: time, algbw, busbw of each size.")(command)


def _bench(
    collective: str,
    /,
    *,
    site: str | None,
    results: Path,
    wait: bool | None,
    dry_run: bool,
    ranks: str | None,
    **given: Any,
) -> None:
    from hpc_train.submissions.bench import BenchOptions, bench_overrides, check_ranks

    names = [key for key in BenchOptions.__struct_fields__ if key != "collective"]
    options = BenchOptions(collective=collective, **{key: given.pop(key) for key in names})
    own = bench_overrides(options, ranks)
    prepared = prepare_and_warn(Path("bench"), (), site, given, starts=not dry_run, own=own)
    check_ranks(prepared, options)
    if dry_run:
        echo_scripts(prepared)
    else:
        _submit(prepared, results, wait=wait)


def _submit(prepared: Prepared, results: Path, *, wait: bool | None) -> None:
    """Submit the job; if it is waited for, print its table."""
    from hpc_train.submissions.bench import bench_table

    done = start(prepared, results)
    if not (prepared.site.batch.this_machine if wait is None else wait):
        announce(done, as_json=False)
        return
    code = follow(done.home, done)
    for table in filter(None, map(bench_table, done.new)):
        click.echo(table)
    if not code:
        say(f"next: hpctrain collect {done.home.name}")
    raise SystemExit(code)
