"""`hpctrain bench train`."""

from __future__ import annotations

import math
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.options import (
    job_keys,
    prepare_and_warn,
    results_option,
    setting_options,
    site_option,
)
from hpc_train.jobs.strategies import STRATEGIES

if TYPE_CHECKING:
    from hpc_train.scripts.prepare import Prepared


# A month; with more than 292 years a timer of Python fails.
MOST_MINUTES = 43_200


class Minutes(click.FloatRange):
    """A number of minutes; NaN is in no range, but click compares and accepts it."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number.

        Raises:
            click.BadParameter: it is not in the range.
        """
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid float.", param, ctx)
        return number


@click.command()
@click.option(
    "--minutes",
    type=Minutes(min=0.5, max=MOST_MINUTES),
    default=10.0,
    show_default=True,
    help="The time for all runs: it decides how many steps each has.",
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
    minutes: float,
    strategies: tuple[str, ...],
    dry_run: bool,
    results: Path,
    site: str | None,
    **given: Any,
) -> None:
    """Compare the strategies of training on this machine.

    Each strategy trains the same small GPT on 1, 2, 4 and 8 GPUs or, without GPUs, cores, as far as
    there are so many. What cannot run is listed with the reason. Runs that have not ended after
    --minutes are cancelled. The output is the report of the study.
    """
    from msgspec.structs import replace

    from hpc_train.base.data_folders import strategies_study
    from hpc_train.base.extras import need
    from hpc_train.cli.output import say
    from hpc_train.scripts.prepare import prepare, request_of
    from hpc_train.submissions.bench import FEWEST_STEPS, probe, steps_in, train_overrides

    need("hpctrain bench train", "report")
    own = train_overrides(results, strategies, FEWEST_STEPS)
    first = prepare_and_warn(strategies_study(), (), site, given, starts=not dry_run, own=own)
    if dry_run:
        _echo(first)
        return
    found = probe(first)
    steps = steps_in(minutes, len(first.points), found)
    runs = "1 run" if len(first.points) == 1 else f"{len(first.points)} runs"
    say(
        f"{runs} of {steps} steps, in at most {minutes:g} minutes: a start takes "
        f"{found.start:.1f} s here, a step of single {found.step * 1000:.0f} ms"
    )
    own = train_overrides(results, strategies, steps)
    request = request_of(strategies_study(), (), site, job_keys(given), given["settings"])
    prepared = prepare(replace(request, overrides=(*own, *request.overrides), starts=True))
    run_study(prepared, results, minutes * 60)


def _echo(prepared: Prepared) -> None:
    from hpc_train.cli.render import echo_scripts

    echo_scripts(prepared)


def run_study(prepared: Prepared, results: Path, seconds: float) -> None:
    """Submit a study, follow it, cancel what has not ended after some time, and report it.

    Raises:
        SystemExit: the exit code of the command.
    """
    from hpc_train.cli.follow_runs import follow
    from hpc_train.cli.output import say, show_warnings
    from hpc_train.cli.report import report
    from hpc_train.submissions.submit import submit

    show_warnings()
    done = submit(prepared, results, sys.argv, say)
    timer = threading.Timer(seconds, _stop, [done.home])
    timer.daemon = True
    timer.start()
    code = follow(done.home, {run.run_id for run in done.new}, {})
    timer.cancel()
    if code != 130:
        # The runs have ended because it cancels them, before it has said so.
        timer.join()
        words = [done.home.name, "--results", str(results)]
        with report.make_context("report", words, click.get_current_context()) as context:
            report.invoke(context)
    sys.exit(code)


def _stop(home: Path) -> None:
    from hpc_train.base.errors import HpcTrainError
    from hpc_train.runs.run_states import cancel

    try:
        count = len(cancel(home, "cancelled as its time was over").runs)
    except HpcTrainError as failure:  # the last run has just ended
        click.echo(f"hpctrain: {failure}", err=True)
        return
    click.echo(f"hpctrain: the time is over; cancelled: {count}", err=True)
