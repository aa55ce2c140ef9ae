"""Quoting: once, by kind."""

from __future__ import annotations

import pytest

from hpc_train.errors import RenderError
from hpc_train.model.plan import JobVar, Text
from hpc_train.scripts.filters import command, directive, line, required, sh, token


def test_a_literal_is_quoted_and_a_job_variable_expands() -> None:
    assert token(Text(text="a $(id)")) == "'a $(id)'"
    assert token(JobVar(name="MASTER_ADDR")) == '"$MASTER_ADDR"'
    assert required(JobVar(name="R")) == '"${R:?the launcher did not set it}"'
    assert required(Text(text="0")) == "0"


def test_a_value_that_begins_with_an_equals_sign_is_no_comparison() -> None:
    assert sh("=mlx5_0") == line("=mlx5_0") == "'=mlx5_0'"
    assert sh("=it's") == "'=it'\"'\"'s'"
    assert sh("a=b") == "a=b"


@pytest.mark.parametrize("value", ["gpu", "a100&nvlink", "01:30:00", "gpu:a100:4", "[a|b]*2"])
def test_a_directive_takes_what_slurm_uses(value: str) -> None:
    assert directive(value) == value


@pytest.mark.parametrize("value", ["a b", "x\n#SBATCH --qos=high", "$(id)", "`id`", "a'b", '"', ""])
def test_a_directive_cannot_become_another(value: str) -> None:
    with pytest.raises(RenderError, match="cannot be written as an #SBATCH value"):
        directive(value)


def test_a_long_command_breaks_before_options() -> None:
    words = [Text(text=word) for word in ["srun", *[f"--option-number-{i}=x" for i in range(9)]]]
    lines = command(words).split(" \\\n  ")
    assert len(lines) > 1
    assert all(len(line) < 100 for line in lines)
    assert all(line.startswith("--") for line in lines[1:])
