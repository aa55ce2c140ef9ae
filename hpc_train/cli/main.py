"""`hpctrain`: a group whose commands are imported only when they are used."""

from __future__ import annotations

import importlib
import os
import re
import sys

import click

from hpc_train.cli.terminal import plain
from hpc_train.errors import HpcTrainError
from hpc_train.version import VERSION

# Help texts are repeated here, because click would import every command to list them.
COMMANDS = {
    "submit": ("hpc_train.cli.submit:submit", "Submit a job, a study or a script."),
    "render": ("hpc_train.cli.render:render", "Print the job script."),
    "explain": (
        "hpc_train.cli.explain:explain",
        "Print every setting, directive, variable and argument: value, origin, why.",
    ),
    "lint": (
        "hpc_train.cli.lint:lint",
        "Find errors in any job script, and print what to write instead.",
    ),
    "status": (
        "hpc_train.cli.status:status",
        "Print the state of one run, of the runs of a job or study, or of all runs.",
    ),
    "logs": ("hpc_train.cli.logs:logs", "Print a run's logs, rank by rank."),
    "cancel": ("hpc_train.cli.cancel:cancel", "Cancel the unfinished runs of a job or study."),
    "retry": (
        "hpc_train.cli.retry:retry",
        "Resubmit the runs that failed, were lost or were cancelled.",
    ),
    "collect": (
        "hpc_train.cli.collect:collect",
        "Print the measurements in the logs of runs and studies, or in any log files.",
    ),
    "report": (
        "hpc_train.cli.report:report",
        "Report how a study, logs, records, a CSV table or a bundle scale.",
    ),
    "compare": (
        "hpc_train.cli.compare:compare",
        "Compare two results at each point, and list the settings that differ.",
    ),
    "diagnose": (
        "hpc_train.cli.diagnose:diagnose",
        "Print why a run, or the job of any log files, failed: the root cause first.",
    ),
    "site": ("hpc_train.cli.site:site", "List, show, check, draft and test site profiles."),
    "doctor": (
        "hpc_train.cli.doctor:doctor",
        "Inspect this machine and report problems; exit code 1 if jobs cannot work.",
    ),
    "lab": ("hpc_train.cli.lab:lab", "Run a Slurm cluster of several nodes on this machine."),
    "completion": (
        "hpc_train.cli.completion:completion",
        "Print the completion script of a shell.",
    ),
}


# Longer than any path or list of allowed words.
_LONG = re.compile(r"\S{5000,}")


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of use, not in alphabetical order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "--version", prog_name="hpctrain")
def cli() -> None:
    """Run PyTorch training on clusters, and measure how it scales.

    Start with: hpctrain submit train.py --tasks-per-node 2 --wait
    """


def main() -> None:
    """Run the command line and exit: 0 success, 1 failure, 2 invalid input, 3 partial result."""
    try:
        code = cli.main(prog_name="hpctrain", standalone_mode=False)
    except HpcTrainError as failure:
        _complain(failure)
        code = failure.exit_code
    except click.ClickException as failure:
        failure.show()
        code = failure.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        # The reader (head, less) has exited; Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as failure:
        # A folder without permission or a full disk behind stdout is not a bug of the program.
        _complain(HpcTrainError(f"{failure.filename or 'output'}: {failure.strerror or failure}"))
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _shortened(word: re.Match[str]) -> str:
    return f"{word[0][:80]}… ({len(word[0])} letters)"


def _complain(failure: HpcTrainError) -> None:
    click.echo(plain(f"hpctrain: {_LONG.sub(_shortened, failure.message)}"), err=True)
    if failure.hint:
        click.echo(plain(f"  {failure.hint}"), err=True)
