"""`%%hpctrain`: submits the text of a cell as a script."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, NoReturn

from hpc_train.api.arguments import CellOptions, cell_request, remove_unused, results_of, store_cell
from hpc_train.api.submit import submit_request
from hpc_train.base.errors import ArgumentError, HpcTrainError, nearest

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from hpc_train.api.run import SubmittedRun

OPTIONS = (
    "site", "results", "name", "launcher", "nodes", "tasks-per-node", "gpus-per-node",
    "cpus-per-task", "mem", "time", "partition", "account", "qos", "constraint",
)  # fmt: skip
_OF_THE_JOB = tuple(name.replace("-", "_") for name in OPTIONS[2:])
USAGE = "%%hpctrain [--nodes N …] [--set KEY=VALUE] [--var NAME] [--wait] [-- ARGUMENTS]"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"%%hpctrain: {message}", USAGE)


def _variable(text: str) -> str:
    if not text.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a variable")
    return text


def _parser() -> _Parser:
    parser = _Parser(prog="%%hpctrain", add_help=False, allow_abbrev=False)
    for name in OPTIONS:
        parser.add_argument(f"--{name}")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--max-gpu-hours", type=float)
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--var", type=_variable)
    return parser


def submit_cell(line: str, cell: str) -> tuple[SubmittedRun, argparse.Namespace]:
    """Submit the text of a cell as a script; return the run, and the options of its first line.

    Raises:
        ArgumentError: an unknown option, or an empty cell.
        HpcTrainError: as `hpc_train.submit`; a secret in the text, or no Python program.
    """
    options, arguments = _options(line)
    if not cell.strip():
        raise ArgumentError("%%hpctrain: the cell is empty", USAGE)
    keys = {name: text for name in _OF_THE_JOB if (text := getattr(options, name)) is not None}
    root = results_of(options.results)
    chosen = CellOptions(options.site, keys, options.settings, arguments)
    request = cell_request(cell, root, chosen)
    try:
        (run,) = submit_request(request, root, options.max_gpu_hours).runs
    except HpcTrainError:
        remove_unused(request, root)
        raise
    store_cell(run.folder, cell)
    return run, options


def _options(line: str) -> tuple[argparse.Namespace, list[str]]:
    try:
        words = shlex.split(line)
    except ValueError as failure:
        raise ArgumentError(f"%%hpctrain: {failure}", USAGE) from None
    end = words.index("--") if "--" in words else len(words)
    options, unknown = _parser().parse_known_args(words[:end])
    if unknown:
        known = [f"--{name}" for name in (*OPTIONS, "set", "max-gpu-hours", "var", "wait")]
        near = nearest(unknown[0].partition("=")[0], known)
        raise ArgumentError(f"%%hpctrain: unknown option {unknown[0]!r}{near}", USAGE)
    return options, words[end + 1 :]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add `%%hpctrain` to a notebook (`%load_ext hpc_train`)."""

    def hpctrain(line: str, cell: str) -> SubmittedRun | None:
        """Submit the cell as a script, with the options of `hpctrain submit`.

        Example: `%%hpctrain --nodes 2 --time 1h --var run -- --epochs 3`. The script runs with the
        interpreter of the notebook; variables of the notebook do not exist in it. Its text is
        stored as `cell.py` in the folder of the run. `--var NAME` assigns the run to a variable,
        `--wait` waits for its end.
        """
        run, options = submit_cell(line, cell)
        if options.var:
            shell.push({options.var: run})  # type: ignore[no-untyped-call]
        if not options.wait:
            return run
        run.wait()
        return None

    shell.register_magic_function(hpctrain, "cell", "hpctrain")  # type: ignore[arg-type]
