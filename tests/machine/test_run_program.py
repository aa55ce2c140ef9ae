"""What a program printed and how it ended -> its answer, or why there is none."""

import pytest

from hpc_train.base.processes import ABSENT, Finished, answer_of


@pytest.mark.parametrize(
    ("code", "out", "err", "text", "problem"),
    [
        (0, "a\n", "warning\n", "a\n", ""),
        # `srun --mpi=list` before 22.05.
        (0, "", "MPI types are...\n", "MPI types are...\n", ""),
        (0, "", "squeue: error: no answer\n", "", "no answer"),
        (1, "a part\n", "sinfo: error: no answer\n", "", "no answer"),
        (1, "", "first\nlast\n", "", "last"),
        (3, "", "", "", "exit code 3"),
        (127, "", "bash: x: command not found\n", "", ABSENT),
    ],
)
def test_only_what_a_program_that_succeeded_printed_is_its_answer(
    code: int, out: str, err: str, text: str, problem: str
) -> None:
    answer = answer_of(Finished(returncode=code, stdout=out, stderr=err))
    assert (answer.text, answer.problem) == (text, problem)
