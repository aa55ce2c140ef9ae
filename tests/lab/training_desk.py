"""A folder with a job for the SageMaker of the lab, and the commands of its user."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.end_to_end.user import commands
from tests.pipeline.waiting import wait_for

JOB: dict[str, Any] = {
    "name": "job",
    # Ranks of torchrun import torch first.
    "launcher": "spawn",
    "resources": {"nodes": 2, "cpus_per_task": 1, "time": "5m"},
}


class Desk(NamedTuple):
    """A folder with jobs, and the environment of the lab."""

    folder: Path
    environment: dict[str, str]

    def hpctrain(self, *words: str) -> subprocess.CompletedProcess[str]:
        return commands().run(words, self.environment, self.folder)

    def submit(
        self, command: list[str], *words: str, **job: Any
    ) -> subprocess.CompletedProcess[str]:
        content = {**JOB, "command": command, **job}
        (self.folder / "job.yaml").write_text(json.dumps(content))
        return self.hpctrain("submit", "job.yaml", "--site", "sagemaker", *words)

    def run(self) -> dict[str, Any]:
        done = self.hpctrain("status", "job", "--json")
        assert done.returncode in (0, 1), done.stderr
        (run,) = json.loads(done.stdout)["runs"]
        assert isinstance(run, dict)
        return run

    def end(self) -> dict[str, Any]:
        """Wait for the end of the run, and for its last lines."""
        wait_for(self._has_ended, every_s=0.3)
        return self.run()

    def _has_ended(self) -> bool:
        self.run()
        return self.file("submission.json").get("state") is not None

    def path(self, name: str) -> Path:
        home = self.folder / "results" / "job"
        (folder,) = (path for path in home.iterdir() if path.is_dir())
        return folder / name

    def file(self, name: str) -> dict[str, Any]:
        found = json.loads(self.path(name).read_text())
        assert isinstance(found, dict)
        return found

    def log(self, name: str) -> str:
        return self.path(f"logs/{name}").read_text()
