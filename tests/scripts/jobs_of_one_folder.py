"""Jobs with one folder of checkpoints, run by bash without Slurm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script

# Lists the jobs of the file `queue`; a controller that is gone does not answer.
SQUEUE = """\
#!/bin/bash
job=${2#--jobs=}
[ ! -e gone ] || { echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }
grep -qs "^$job " queue || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
sed -n "s/^$job //p" queue
"""
SCONTROL = """\
#!/bin/bash
[ "$1 $2" != "show job" ] || echo "JobId=1 JobState=RUNNING PreemptTime=None A="
[ "$1" != requeue ] || touch requeued
"""
SAVE = 'echo "$HPCTRAIN_RUN" >>"$HPCTRAIN_CHECKPOINTS/saved"; exit "${CODE:-0}"'


class JobsOfOneFolder:
    """Jobs whose runs share the folder `ckpt`."""

    def __init__(self, folder: Path, plan: Callable[..., LaunchPlan], site: str) -> None:
        self.folder, self.plan, self.site = folder, plan, site
        (folder / "bin").mkdir()
        for program, text in (("squeue", SQUEUE), ("scontrol", SCONTROL)):
            (folder / "bin" / program).write_text(text)
            (folder / "bin" / program).chmod(0o755)
        (folder / "bin" / "sleep").symlink_to("/bin/true")

    def start(self, run: str, *, name: str = "demo", job: int = 1, **more: Any) -> str:
        """Run a job to its end; return what it prints if it used the folder, else `refused: …`."""
        keys: dict[str, Any] = {"name": name, "env": {"HPCTRAIN_CHECKPOINTS": "ckpt"}, **more}
        environment = keys.pop("environment", {})
        plan = self.plan(self.site, command=["bash", "-c", SAVE], launcher="single", **keys)
        (self.folder / run).mkdir(exist_ok=True)
        (self.folder / run / "job.sbatch").write_text(render_script(plan).text)
        done = subprocess.run(
            ["bash", f"{run}/job.sbatch", run],
            cwd=self.folder,
            env={
                "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
                "SLURM_JOB_ID": str(job),
                "SLURM_JOB_NODELIST": "localhost",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=240,
        )
        if done.returncode == 2:
            return f"refused: {done.stderr}"
        assert done.returncode == int(environment.get("CODE", 0)), done.stderr
        return done.stdout + done.stderr

    def note(self, run: str, **facts: Any) -> None:
        """Change status.json of a run."""
        file = self.folder / run / "status.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **facts}) + "\n")

    def queue(self, *lines: str) -> None:
        (self.folder / "queue").write_text("".join(f"{line}\n" for line in lines))

    @property
    def owner(self) -> str:
        return (self.folder / "ckpt" / "owner").read_text().splitlines()[1]

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "ckpt").iterdir())
