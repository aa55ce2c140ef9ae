"""docs/beside.md: what it says of hpctrain, and of the submitit that is installed, is so."""

from __future__ import annotations

import datetime
import re
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
import submitit
from click.testing import CliRunner
from submitit.slurm.slurm import _make_sbatch_string

from hpc_train.cli.commands import COMMANDS
from hpc_train.cli.group import cli
from hpc_train.registry import BUILT_IN
from hpc_train.version import VERSION

PAGE = (Path(__file__).resolve().parents[2] / "docs/beside.md").read_text(encoding="utf-8")
LAUNCHERS = BUILT_IN["launchers"]
COLUMNS = ("sbatch", "submitit", "torchx", "NeMo-Run", "ReFrame", "hpctrain")


def rows() -> dict[str, dict[str, str]]:
    """Return the cells of the tables with a column for each program, by row and column."""
    lines = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    wide = [[cell.strip() for cell in line] for line in lines if len(line) == len(COLUMNS) + 1]
    return {name: dict(zip(COLUMNS, cells, strict=True)) for name, *cells in wide if name}


ROWS = rows()
OTHERS = COLUMNS[:-1]
MARK = re.compile(r"\[([A-Z]\d)\](?!:)")
SOURCE = re.compile(r"^\| \[([A-Z]\d)\] \| .+ \| (\d{4}-\d\d-\d\d) \|$", re.MULTILINE)
ADDRESS = re.compile(r"^\[([A-Z]\d)\]: https://\S+$", re.MULTILINE)


def test_no_cell_is_empty() -> None:
    assert len(ROWS) > 15
    assert [(name, column) for name, row in ROWS.items() for column in row if not row[column]] == []


def test_what_is_stated_of_another_program_has_a_source_with_address_and_date() -> None:
    cells = [row[column] for row in ROWS.values() for column in OTHERS]
    assert [cell for cell in cells if cell not in ("-", "not checked") and "[" not in cell] == []
    dates = dict(SOURCE.findall(PAGE))
    used = {mark for cell in cells for mark in MARK.findall(cell)}
    assert used == set(dates) == set(ADDRESS.findall(PAGE))
    assert max(map(datetime.date.fromisoformat, dates.values())).year >= 2026


def test_versions_are_those_that_were_read() -> None:
    assert f"| submitit | {version('submitit')} |" in PAGE
    assert f"| hpctrain | {VERSION} |" in PAGE


def test_the_launchers_are_those_of_hpctrain() -> None:
    named = re.findall(r"`(\w+)`", ROWS["starts the ranks"]["hpctrain"])
    assert sorted(named) == sorted(LAUNCHERS)


def test_each_command_exists() -> None:
    named = [re.findall(r"`([a-z]+)[ `]", row["hpctrain"]) for row in ROWS.values()]
    words = {word for row in named for word in row} - set(LAUNCHERS)
    assert {"render", "explain", "diagnose", "compare", "report", "retry"} <= words <= set(COMMANDS)


@pytest.mark.parametrize("words", ["site check --live", "lint --ask", "submit --dry-run"])
def test_each_option_exists(words: str) -> None:
    *command, option = words.split()
    assert f"`{words}`" in PAGE
    assert option in CliRunner().invoke(cli, [*command, "--help"]).output


def test_submitit_writes_the_script_and_starts_the_ranks_with_srun() -> None:
    text = _make_sbatch_string("python task.py", folder="logs/%j", nodes=2, ntasks_per_node=2)
    assert "srun " in text
    assert "#SBATCH --signal=" in text
    assert ROWS["starts the ranks"]["submitit"].startswith("`srun` [")


def test_submitit_requeues_a_function_with_a_checkpoint() -> None:
    assert hasattr(submitit.helpers.Checkpointable, "checkpoint")
    assert "checkpoint of the function, requeue" in ROWS["preemption, time limit"]["submitit"]


def test_submitit_has_arrays_and_runs_locally() -> None:
    assert callable(submitit.AutoExecutor.map_array)
    assert "local processes" in ROWS["other schedulers"]["submitit"]
    assert submitit.LocalExecutor.affinity() >= 0


def test_hpctrain_is_a_plug_in_of_submitit() -> None:
    (found,) = entry_points(group="submitit", name="executor")
    assert found.value.startswith("hpc_train.")
