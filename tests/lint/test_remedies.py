"""A correction names the option, the launcher and the variables of the script at hand."""

import pytest

from hpc_train.lint.lint_script import lint_script
from tests.lint.conftest import context_of

AGENT = "srun bash -c 'torchrun --nproc-per-node=4 t.py'"


@pytest.mark.parametrize(
    ("rule", "text", "advice"),
    [
        ("HT015", "#SBATCH -n=4", "write -n 4, -n4 or --ntasks=4"),
        ("HT015", "#SBATCH -J='a b'", "write -J 'a b', -J'a b' or --job-name='a b'"),
        ("HT015", "#SBATCH -c=", "write -c VALUE, -cVALUE or --cpus-per-task=VALUE"),
        ("HT020", "#SBATCH --oversubscribe=yes", "write --oversubscribe"),
        ("HT020", "#SBATCH --nodes", "write --nodes=VALUE"),
        (
            "HT221",
            f"#SBATCH --gpus-per-task=4 --cpus-per-gpu=8\n{AGENT}",
            "write srun --cpu-bind=none torchrun …",
        ),
        (
            "HT221",
            f"#SBATCH --gpus-per-node=4 --cpus-per-task=8\n{AGENT}",
            'write srun --cpu-bind=none --cpus-per-task="$SLURM_CPUS_PER_TASK" torchrun …',
        ),
    ],
)
def test_an_advice_is_about_this_script(rule: str, text: str, advice: str) -> None:
    found = lint_script(f"#!/bin/bash\n{text}\n")
    assert [one.advice for one in found if one.id == rule] == [advice]


@pytest.mark.parametrize(
    ("where", "launch"), [("tight", "torchrun t.py"), ("site", "mpirun -n 2 python t.py")]
)
def test_a_launcher_that_the_site_advises_against_is_not_advised(where: str, launch: str) -> None:
    found = lint_script(f"#!/bin/bash\n#SBATCH --nodes=1\n{launch}\n", context_of([where]))
    named = {"tight": "use srun", "site": "use srun or torchrun"}
    assert [one.advice for one in found if one.id == "HT703"] == [named[where]]
