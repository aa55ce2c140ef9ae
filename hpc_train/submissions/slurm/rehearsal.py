"""What sbatch says of a script that it does not submit."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.submission import Cluster
from hpc_train.submissions.slurm.commands import ask
from hpc_train.submissions.slurm.refusals import advice


def test_only(cluster: Cluster, script: Path) -> str:
    """Return sbatch's own words on one line, and what to do when it refuses."""
    done = ask(cluster, "sbatch", "--test-only", str(script))
    lines = (done.stderr + done.stdout).strip().splitlines()
    words = "; ".join(line.removeprefix("sbatch: ").removeprefix("error: ") for line in lines)
    if done.returncode == 0:
        return words
    hint = advice(words)
    return f"refused: {words}" + (f" ({hint})" if hint else "")
