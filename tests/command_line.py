"""`hpctrain` in this process: its exit code and its two outputs, without the start of a Python.

What is about a process (signals, pipes, terminals, the end of the interpreter) starts one.
`started` runs several commands in one other process, for what differs there: the user, the file
system, the packages.
"""

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest import mock

from hpc_train.cli.main import main
from hpc_train.lint import ask_slurm

_ROOT = Path(__file__).resolve().parents[1]
_START = """
import sys
sys.modules.update(dict.fromkeys({!r}))
from tests.command_line import run_all
run_all()
"""
# What one process asks Slurm once.
_ASKED_ONCE = (ask_slurm.resources, ask_slurm.accounts)


def run_command(
    words: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `hpctrain WORDS` in a folder, or this one, as `main` does; stdin is empty."""
    out, err = _output(), _output()
    for asked in _ASKED_ONCE:
        asked.cache_clear()
    with _as_a_process(words, environment, folder or Path.cwd(), out, err):
        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0
    text, said = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(["hpctrain", *words], code, text, said)


def _output() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)


@contextlib.contextmanager
def _as_a_process(
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    out: io.TextIOWrapper,
    err: io.TextIOWrapper,
) -> Iterator[None]:
    """Give `main` what a process of its own would have, and take it back."""
    here = Path.cwd()
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", ["hpctrain", *words]),
        mock.patch.object(sys, "path", [*sys.path]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO())),
        mock.patch.object(tempfile, "tempdir", None),
        mock.patch.object(logging.root, "handlers", []),
        mock.patch("hpc_train.cli.main.gc"),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)
            out.flush()
            err.flush()


def started(
    *lines: str,
    folder: Path,
    prefix: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
    package: Path = _ROOT,
) -> dict[str, subprocess.CompletedProcess[str]]:
    """Run command lines in one new process, which cannot import the packages `without`.

    `package` is the folder of hpc_train.
    """
    program = [*prefix, sys.executable, "-c", _START.format(tuple(without)), *lines]
    searched = os.pathsep.join(map(str, (package, _ROOT)))
    env = {**(os.environ if environment is None else environment), "PYTHONPATH": searched}
    done = subprocess.run(program, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = map(json.loads, done.stdout.splitlines())
    return {
        line: subprocess.CompletedProcess(line, *one)
        for line, one in zip(lines, found, strict=True)
    }


def run_all() -> None:
    """Run the command lines of `sys.argv`; print the code and the outputs of each as JSON."""
    for line in sys.argv[1:]:
        done = run_command(line.split(), dict(os.environ))
        print(json.dumps([done.returncode, done.stdout, done.stderr]))  # noqa: T201
