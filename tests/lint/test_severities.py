"""What surely fails is an error, what depends on the site a warning, a matter of taste an info."""

from __future__ import annotations

import pytest

from hpc_train.lint.lint_script import lint_script
from tests.cases import cases

TWO = "#SBATCH --nodes=2\n"
RANKS = "#SBATCH --nodes=1 --ntasks=4"
WORKERS = "bash -c 'torchrun --nproc-per-node=4 t.py'"


@pytest.mark.parametrize(
    ("rule", "severity", "text"),
    cases("lint/severities.yaml", "a_finding_is_as_severe_as_it_is_certain"),
)
def test_a_finding_is_as_severe_as_it_is_certain(rule: str, severity: str, text: str) -> None:
    found = lint_script(f"#!/bin/bash\n{text}srun python t.py\n")
    assert [one.severity for one in found if one.id == rule] == [severity]


@pytest.mark.parametrize(
    ("severity", "text"),
    [
        ("error", "#SBATCH --nodes=2\ncd work\n#SBATCH --gpus=1\npython t.py\n"),
        ("error", "python t.py\n#SBATCH --gpus=1\n"),
        ("warning", "#SBATCH --nodes=1\npython t.py\n#SBATCH --gpus=1\n"),
    ],
)
def test_directives_below_a_whole_script_may_be_there_on_purpose(severity: str, text: str) -> None:
    found = lint_script(f"#!/bin/bash\n{text}")
    assert [one.severity for one in found if one.id == "HT002"] == [severity]
