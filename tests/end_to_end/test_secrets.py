"""A secret reaches the ranks on every node, and no file of the run folder."""

from __future__ import annotations

import pytest

from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
VALUE = "hf_9d3b-very-secret"
CHECK = f'[ "$HF_TOKEN$WANDB_API_KEY" = {VALUE}{VALUE} ] && echo "$(hostname) has them"'


def test_secrets(user: User) -> None:
    (user.folder / "check.sh").write_text(CHECK)
    key = user.folder / "key"
    key.write_text(VALUE)
    key.chmod(0o600)
    resources = {
        "nodes": 2,
        "tasks_per_node": 1,
        "cpus_per_task": 1,
        "gpus_per_node": 0,
        "time": "1m",
    }
    job = {
        "name": "hush",
        "command": ["bash", "check.sh"],
        "launcher": "srun",
        "resources": resources,
        "secrets": {"HF_TOKEN": "env", "WANDB_API_KEY": str(key)},
        "setup": ["set -x"],
    }
    user.write("job.yaml", job)
    refused = user.submit("job.yaml")
    assert "HF_TOKEN is not set in this shell" in refused.stderr
    given = ("submit", "job.yaml", "--site", "lab", "--wait")
    done = user.hpctrain(*given, HF_TOKEN=VALUE)
    assert done.returncode == 0, done.stdout + done.stderr
    files = [path for path in (user.folder / "results").rglob("*") if path.is_file()]
    assert [path for path in files if VALUE.encode() in path.read_bytes()] == []
    said = "".join(path.read_text() for path in files if path.name.startswith("rank-"))
    assert said.count("has them") == 2
