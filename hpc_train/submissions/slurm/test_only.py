"""The answer of sbatch --test-only."""

from __future__ import annotations

import os
from pathlib import Path

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.shell import run
from hpc_train.submissions.slurm.sbatch_environment import environment_changes, options_in
from hpc_train.submissions.slurm.sbatch_errors import advice


def test_only(cluster: SlurmEndpoint, script: Path) -> str:
    """Return the message of sbatch on one line, and the remedy if it refuses.

    sbatch gets the environment of the submission, because an effective SBATCH_… variable may be the
    reason for a refusal.
    """
    environment = _environment(cluster, script.read_text(encoding="utf-8"))
    done = run(["sbatch", "--test-only", str(script)], 30.0, environment=environment)
    lines = (done.stderr + done.stdout).strip().splitlines()
    words = "; ".join(line.removeprefix("sbatch: ").removeprefix("error: ") for line in lines)
    if done.returncode == 0:
        return words
    hint = advice(words)
    return f"refused: {words}" + (f" ({hint})" if hint else "")


def _environment(cluster: SlurmEndpoint, script: str) -> dict[str, str]:
    changes = environment_changes(os.environ, cluster, options_in(script))
    # The remedies are found from sbatch's messages in English.
    changed = {**os.environ, **changes, "LC_ALL": "C"}
    return {name: value for name, value in changed.items() if value is not None}
