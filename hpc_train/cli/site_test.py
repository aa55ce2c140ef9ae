"""`hpctrain site test`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.complete import sites
from hpc_train.cli.options import prepare_and_warn, results_option, setting_options

if TYPE_CHECKING:
    from hpc_train.model.run import RunFolder
    from hpc_train.pipeline.prepared import Prepared
    from hpc_train.pipeline.site.smoke_job import Smoke


@click.command("test")
@click.argument("site", metavar="NAME", shell_complete=sites)
@setting_options
@results_option
@click.option("--update", is_flag=True, help="Replace the stored result.")
def test_site(site: str, results: Path, *, update: bool, **given: Any) -> None:
    """Run the smoke job of a site and store its result as tests.expect of the profile.

    The job runs on two nodes for one minute. It checks that all ranks connect and that a sum is
    correct, and measures the speed and the interface of a large all-reduce. Differences from the
    profile, or from the stored result, are printed.
    """
    import datetime

    from hpc_train.cli.busy import busy
    from hpc_train.cli.output import say
    from hpc_train.pipeline.site.smoke_job import (
        read_smoke,
        same_kind,
        save_result,
        write_smoke_job,
    )

    with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
        file = write_smoke_job(Path(folder))
        prepared = _prepared(file, site, given)
    profile = prepared.first.site.value
    run = _run(prepared, results)
    with busy("reading the logs of the job"):
        smoke = read_smoke(run, profile, datetime.date.today().isoformat())
    _print_result(smoke)
    stored = profile.tests.expect if profile.tests else ()
    if smoke.warnings and not update:
        raise SystemExit(1)
    if update or not any(same_kind(one, smoke.expected) for one in stored):
        stored_in = save_result(profile, prepared.first.profile, smoke.expected)
        say(f"stored as tests.expect in {stored_in}")


def _prepared(file: Path, site: str, given: dict[str, Any]) -> Prepared:
    """Prepare the job; its file is temporary, so messages do not name it."""
    from hpc_train.errors import HpcTrainError

    try:
        return prepare_and_warn(file, (), site, given)
    except HpcTrainError as failure:
        failure.message = failure.message.replace(str(file), "the smoke job")
        raise


def _run(prepared: Prepared, results: Path) -> RunFolder:
    """Submit the job and follow it to its end; exit if it fails."""
    from hpc_train.cli.busy import busy
    from hpc_train.cli.follow_runs import follow
    from hpc_train.cli.output import say, show_warnings
    from hpc_train.pipeline.submit import DEFAULT_OPTIONS, submit

    show_warnings()
    with busy("submitting"):
        done = submit(prepared, results, sys.argv, DEFAULT_OPTIONS, say)
    code = follow(done.home, {folder.run_id for folder in done.new}, {})
    if code:
        raise SystemExit(code)
    return done.new[0]


def _print_result(smoke: Smoke) -> None:
    result = smoke.expected
    over = (
        f" over {result.transport or result.interface}"
        if result.transport or result.interface
        else ""
    )
    speed = f", {result.busbw_gbs} GB/s of bus bandwidth" if result.busbw_gbs else ""
    click.echo(
        f"{smoke.ranks} ranks on {', '.join(smoke.hosts)}: {result.backend}{over}{speed}, "
        f"started by {result.launcher}"
    )
    for warning in smoke.warnings:
        click.echo(f"warning: {warning}")
