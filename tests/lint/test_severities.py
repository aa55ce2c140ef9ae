"""What surely fails is an error, what depends on the site a warning, a matter of taste an info."""

from __future__ import annotations

import pytest

from hpc_train.lint.lint_script import lint_script

TWO = "#SBATCH --nodes=2\n"
RANKS = "#SBATCH --nodes=1 --ntasks=4"
WORKERS = "bash -c 'torchrun --nproc-per-node=4 t.py'"


@pytest.mark.parametrize(
    ("rule", "severity", "text"),
    [
        ("HT015", "warning", "#SBATCH -J=name\n"),
        ("HT015", "error", "#SBATCH -N=2\n"),
        ("HT116", "info", "#SBATCH --gres=gpu:8 --gpus-per-node=8\n"),
        ("HT003", "info", "#SBATCH --nodes=2\n# SBATCH --time=1:00:00\n"),
        ("HT003", "warning", "# SBATCH --time=1:00:00\n"),
        ("HT003", "warning", "#SBATCH --nodes=2\n#sbatch --time=1:00:00\n"),
        ("HT202", "warning", f"{RANKS} --gpus-per-node=4\n"),
        ("HT202", "warning", f"{RANKS} --time=10:00\nmodule load pytorch\n"),
        ("HT202", "info", f"{RANKS} --time=9:59\nmodule load pytorch\n"),
        ("HT202", "info", f"{RANKS}\n"),
        ("HT202", "info", f"{RANKS} --gpus-per-node=4\nmodule load mpi4py\n"),
        ("HT202", "warning", f"{RANKS}\nmodule load mpi4py torch\n"),
        ("HT221", "warning", f"{TWO}#SBATCH --cpus-per-task=8\nsrun {WORKERS}\n"),
        ("HT221", "info", f"{TWO}#SBATCH --cpus-per-gpu=8\nsrun {WORKERS}\n"),
        ("HT221", "info", f"{TWO}srun --cpus-per-gpu=8 {WORKERS}\n"),
        ("HT303", "warning", "#SBATCH --gpus-per-node=4\nexport MASTER_PORT=29500\n"),
        ("HT303", "info", "#SBATCH --gpus-per-node=8\nexport MASTER_PORT=29500\n"),
        ("HT303", "info", "#SBATCH --gpus-per-task=8\nexport MASTER_PORT=29500\n"),
        ("HT304", "info", "export MASTER_PORT=$((30000 + SLURM_JOB_ID % 9000))\n"),
        ("HT308", "error", f"{TWO}MASTER_ADDR=$SLURM_NODELIST\n"),
        ("HT308", "warning", "#SBATCH --nodes=1-4\nMASTER_ADDR=$SLURM_NODELIST\n"),
        ("HT414", "info", "export TORCH_NCCL_BLOCKING_WAIT=1\n"),
        ("HT414", "warning", "export CUDA_LAUNCH_BLOCKING=1\n"),
        ("HT507", "info", "export NCCL_BLOCKING_WAIT=1\n"),
        ("HT523", "info", "export NCCL_DEBUG=INFO\n"),
        ("HT523", "warning", "export NCCL_DEBUG=TRACE\n"),
        ("HT525", "info", "export NCCL_P2P_LEVEL=5\n"),
        ("HT601", "info", "#SBATCH --cpus-per-task=4\nmpirun ./a 1\n"),
        ("HT601", "warning", "#SBATCH --cpus-per-task=4\nmodule load openmpi\nmpirun ./a 1\n"),
        ("HT606", "warning", "#SBATCH --ntasks=1\nmpirun -np 4 ./a\n"),
        ("HT606", "error", "#SBATCH --ntasks=1\nmodule load openmpi\nmpirun -np 4 ./a\n"),
    ],
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
