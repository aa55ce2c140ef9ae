"""Requirements of a twin."""

from __future__ import annotations

from hpc_train.lab.requirements import ACCOUNTING_PACKAGES, require

_PACKAGES = {
    "slurmctld": "slurmctld",
    **dict.fromkeys(("sbatch", "scontrol"), "slurm-client"),
    "munged": "munge",
}


def check_programs(*, accounting: bool) -> None:
    """Check the programs.

    Raises:
        LabError: something is missing; all missing programs are named at once.
    """
    require({**_PACKAGES, **(ACCOUNTING_PACKAGES if accounting else {})})
