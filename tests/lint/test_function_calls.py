"""Calls of a script's own functions that run their arguments."""

from __future__ import annotations

import pytest

from hpc_train.lint.job_script import read_script

RUN = 'run() {\n  "$@" &\n  wait "$!"\n}\n'


@pytest.mark.parametrize(
    ("functions", "ending"),
    [
        (RUN, "&"),
        ('run ()\n{\n  echo "$@"\n  "$@"\n}\n', "\n"),
        ('function run {\n  "$@" &\n}\n', "&"),
        ('first() {\n  true\n}\nrun() { "$@" & }\n', "&"),
    ],
)
@pytest.mark.parametrize("above", [True, False])
def test_a_call_counts_as_the_command(functions: str, ending: str, above: bool) -> None:
    call = "run \\\n  srun -n 4 python t.py\n"
    script = read_script(functions + call if above else call + functions)
    (launch,) = script.launches
    assert (launch.outer, launch.starter, launch.command.ending) == ("srun", "python", ending)
    assert script.lines[launch.line - 1] == "  srun -n 4 python t.py"


@pytest.mark.parametrize(
    "text",
    [
        "run() {\n  echo hello\n}\nrun srun -n 4 python t.py\n",
        f"{RUN}\nother srun -n 4 python t.py\n",
        f"{RUN}\nrun\n",
        'srun_all\n"$@"\n',
    ],
)
def test_another_call_does_not(text: str) -> None:
    assert read_script(text).launches == ()
