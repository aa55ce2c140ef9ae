"""The files of hpc_train/data: each one is read by the code, and keeps its type."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.base import decode
from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import HpcTrainError
from hpc_train.base.slurm_options import advice, sbatch_grammar, srun_grammar
from hpc_train.diagnosis.scan_logs import marks
from hpc_train.diagnosis.signatures import failures
from hpc_train.lint.directives import value_forms
from hpc_train.lint.rules import all_rules
from hpc_train.lint.rules.environment import nccl_variables, slurm_variables
from hpc_train.logs.formats.formats import read_formats
from hpc_train.logs.record import headings
from hpc_train.nccl.transport import nccl_lines
from hpc_train.plans.explanations import explanations, slurm_versions
from hpc_train.runs import run_states
from hpc_train.slurm.job_states import sentence

FOLDER = data_file()
READ: dict[str, Callable[[], object]] = {
    "explanations.yaml": explanations,
    "failures.yaml": failures,
    "formats.yaml": lambda: read_formats(data_file("formats.yaml")),
    "headings.yaml": headings,
    "lint_rules.yaml": lambda: all_rules()[0].why,
    "log_marks.yaml": marks,
    "nccl_lines.yaml": nccl_lines,
    "nccl_variables.yaml": nccl_variables,
    "slurm_options.yaml": lambda: (sbatch_grammar(), srun_grammar()),
    "slurm_reasons.yaml": lambda: sentence("Priority"),
    "slurm_refusals.yaml": lambda: advice("invalid partition"),
    "slurm_values.yaml": value_forms,
    "slurm_variables.yaml": slurm_variables,
    "slurm_versions.yaml": slurm_versions,
    "slurm_states.yaml": lambda: run_states.job_state("RUNNING"),
}


def test_each_file_is_read() -> None:
    # The program of hosts is read by tests/hosts/test_transport.py.
    tables = {path.name for path in FOLDER.glob("*.yaml")}
    assert tables == set(READ)
    assert {path.name for path in FOLDER.iterdir()} == {
        *READ, "on_host.sh", "in_job", "schemas", "signatures",
    }  # fmt: skip
    for name, read in READ.items():
        assert read(), name


def test_a_damaged_file_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = data_file("slurm_states.yaml").read_text().replace("state: RUNNING", "state: RUNING", 1)
    (tmp_path / "slurm_states.yaml").write_text(text)
    monkeypatch.setattr(decode, "data_file", lambda name: tmp_path / name)
    run_states._words.cache_clear()
    with pytest.raises(HpcTrainError, match=r"slurm_states\.yaml:\d+: states\.COMPLETING\.state: "):
        run_states.job_state("RUNNING")
