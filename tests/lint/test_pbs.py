"""Scripts for PBS: where findings are, their words, and what operators and we write."""

import pytest

from hpc_train.base.values import LintFinding
from hpc_train.lint.lint_script import lint_script
from hpc_train.lint.pbs import walltime_seconds
from hpc_train.lint.script import read_script

DERECHO = """\
#!/bin/bash
#PBS -A <project_code>
#PBS -N gpu_job
#PBS -j oe
#PBS -k eod
#PBS -q main
#PBS -l walltime=01:00:00
#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4

cd $PBS_O_WORKDIR
module load cuda/12.2.1 cray-mpich/8.1.27
mpiexec -n 8 -ppn 4 set_gpu_rank ./executable_name
"""
TORCHRUN = """\
#!/bin/bash
#PBS -l select=2:ncpus=32:ngpus=4 -l place=scatter
#PBS -l waltime=2:00:00
#PBS -k doe
cd $PBS_O_WORKDIR
torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d \\
  --rdzv-endpoint "$(hostname):29500" train.py
#PBS -q gpu
"""


def by_id(text: str) -> dict[str, LintFinding]:
    return {one.id: one for one in lint_script(text)}


def test_the_script_of_an_operator_has_no_error() -> None:
    assert {one.severity for one in lint_script(DERECHO)} <= {"info"}


def test_findings_have_the_line_the_nearest_word_and_what_to_write() -> None:
    found = by_id(TORCHRUN)
    assert (found["HT903"].line, found["HT903"].message) == (
        3,
        "-l waltime; did you mean 'walltime'?",
    )
    assert found["HT901"].line == 8
    assert found["HT223"].message == "8 workers on a node, but 4 GPUs"


def test_the_advice_is_in_the_words_of_pbs() -> None:
    found = by_id(TORCHRUN)
    assert "mpiexec -n NODES --ppn 1 torchrun" in found["HT226"].advice
    assert "PBS_JOBID" in found["HT303"].advice
    assert not any("SLURM" in one.advice or "srun" in one.advice for one in found.values())


def test_without_a_shell_the_words_are_those_of_pbs() -> None:
    found = by_id("#PBS -N a\npython /t.py\n")["HT001"]
    assert (found.severity, "login shell" in found.message) == ("warning", True)
    assert "sbatch rejects" in by_id("#SBATCH --nodes=1\npython /t.py\n")["HT001"].message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1:30", 90), ("24:00:00", 86400), ("1-00:00:00", None), ("2h", None), ("", None)],
)
def test_a_time_is_read_as_pbs_reads_it(text: str, seconds: int | None) -> None:
    assert walltime_seconds(text) == seconds


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        ("#PBS -l select=2:ncpus=8:mpiprocs=4:ngpus=4", (2, 8, 4)),
        ("#PBS -l select=1:ncpus=8:ngpus=1+2:ncpus=8:ngpus=2", (3, 3, None)),
        ("#PBS -l nodes=2:ppn=4", (2, 8, None)),
        ("#PBS -l select=$N:ncpus=8", (None, None, None)),
        ("#PBS -l ncpus=96,ngpus=8", (None, None, None)),
        ("#PBS -lselect=4:ngpus=8,walltime=1:00:00", (4, 4, 8)),
    ],
)
def test_the_sizes_of_a_request(lines: str, sizes: tuple[int | None, ...]) -> None:
    request = read_script(f"#!/bin/bash\n{lines}\n").pbs
    assert (request.nodes, request.ranks, request.gpus_per_node) == sizes
