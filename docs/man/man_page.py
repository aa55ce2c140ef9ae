"""Print the manual page hpctrain(1), made from the commands: `make man` stores what this prints."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator

import click

from hpc_train import __version__
from hpc_train.cli.group import cli

_HEAD = f""".\\" Made from the commands by `make man`.
.TH HPCTRAIN 1 "" "hpctrain {__version__}" "User Commands"
.SH NAME
hpctrain \\- run PyTorch training on clusters, and measure how it scales
.SH SYNOPSIS
.B hpctrain
[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]...
.SH DESCRIPTION
hpctrain turns a training script or a small job file into a job script for the site, submits it,
and says which rank failed and why. It turns the logs of a scaling study, or a table, into speedups
with confidence intervals and figures. Results go to standard output, everything else to standard
error.
.SH COMMANDS
"""
# Characters that troff would print as others, or interpret.
_NAMES = {"\\": "\\e", "-": "\\-", "~": "\\(ti", "^": "\\(ha", "`": "\\(ga"}
# Title -> what it is, and its meaning.
_TAIL = {
    "ENVIRONMENT": {
        "HPCTRAIN_SITE": "Site profile that is used without --site.",
        "HPCTRAIN_SITE_PATH": "Folders of site profiles, separated by colons.",
        "HPCTRAIN_RESULTS": "Folder of all results that is used without --results.",
        "NO_COLOR": "If set, states are printed without colours.",
        "PAGER": "Program that shows the pages of hpctrain help.",
    },
    "FILES": {
        "results/NAME/RUN/": "Script, manifest, status, logs and measurements of a run.",
        "~/.config/hpctrain/": "Site profiles of the user.",
        "/etc/hpctrain/": "Site profiles of the administrator.",
    },
    "EXIT STATUS": {
        "0": "Success.",
        "1": "Failure.",
        "2": "Invalid input.",
        "3": "Partial result.",
        "130": "Ended by Ctrl-C.",
    },
    "SEE ALSO": {
        "hpctrain help": "Lists the pages of the documentation.",
        "sbatch(1), srun(1), squeue(1)": "Commands of Slurm.",
    },
}


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n".join([_HEAD.rstrip(), *_commands(cli, "hpctrain"), *_tail()]) + "\n")


def _commands(group: click.Group, name: str) -> Iterator[str]:
    context = click.Context(group, info_name=name)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if command is None or command.hidden:
            continue
        yield from _command(command, f"{name} {word}")
        if isinstance(command, click.Group):
            yield from _commands(command, f"{name} {word}")


def _command(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f".SS {_quoted(' '.join([name, *command.collect_usage_pieces(context)]))}"
    yield from _paragraphs(command.help or "")
    for param in command.get_params(context):
        record = param.get_help_record(context)
        # An argument stands in the synopsis; newer versions of click list it here without a text.
        if record is not None and record[1]:
            yield from _item(*record)
    if command.epilog:
        yield from _paragraphs(command.epilog)


def _paragraphs(text: str) -> Iterator[str]:
    r"""Yield paragraphs; those that begin with click's mark `\b` keep their lines."""
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        kept = part.startswith("\b")
        lines = [line for line in part.strip("\b\n").splitlines() if kept or line.strip()]
        yield ".PP"
        if kept:
            yield from (".nf", *map(_text, lines), ".fi")
        else:
            yield _text(" ".join(line.strip() for line in lines))


def _item(term: str, meaning: str) -> Iterator[str]:
    yield from (".TP", f"\\fB{_text(term)}\\fR", _text(meaning))


def _tail() -> Iterator[str]:
    for title, items in _TAIL.items():
        yield f".SH {_quoted(title)}"
        for term, meaning in items.items():
            yield from _item(term, meaning)


def _quoted(text: str) -> str:
    return '"' + _text(text).replace('"', "\\(dq") + '"'


def _text(text: str) -> str:
    """Escape what troff would interpret; name characters beyond ASCII by their code."""
    plain = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    )
    plain = plain.replace("`", "\\(ga")
    codes = (one if ord(one) < 128 else f"\\[u{ord(one):04X}]" for one in plain)
    # A dot or an apostrophe at the beginning of a line would be a request.
    return re.sub(r"^(?=[.'])", r"\\&", "".join(codes))


if __name__ == "__main__":
    main()
