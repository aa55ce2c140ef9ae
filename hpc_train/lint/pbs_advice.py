"""The advice of rules that Slurm and PBS share, in the words of PBS."""

from __future__ import annotations

# Longer texts first: a shorter one may be a part of them.
_WORDS = (
    (
        '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        '$(head -n 1 "$PBS_NODEFILE")',
    ),
    ("srun --ntasks-per-node=1 torchrun", "mpiexec -n NODES --ppn 1 torchrun"),
    ("srun --cpu-bind=none --cpus-per-task=", "mpiexec --cpu-bind none --depth="),
    ("SLURM_JOB_ID % 4000", "${PBS_JOBID%%[!0-9]*} % 4000"),
    ("$SLURM_SUBMIT_DIR", "$PBS_O_WORKDIR"),
    ("$SLURM_NODEID", "${PALS_RANKID:-$OMPI_COMM_WORLD_RANK}"),
    ("$SLURM_NNODES", "$(sort -u $PBS_NODEFILE | wc -l)"),
    ("$SLURM_NTASKS", "$(wc -l <$PBS_NODEFILE)"),
    ("$SLURM_CPUS_PER_TASK", "$NCPUS"),
    ("srun …", "mpiexec …"),
    ("srun bash", "mpiexec bash"),
    ("before srun", "before mpiexec"),
)


def in_words_of_pbs(advice: str) -> str:
    """Replace the commands and variables of Slurm by those of a job of PBS."""
    for slurm, pbs in _WORDS:
        advice = advice.replace(slurm, pbs)
    return advice
