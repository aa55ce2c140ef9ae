"""The starts of one job, run by bash without Slurm."""

import json
import subprocess
from pathlib import Path
from typing import Any

from hpc_train.runs.run import Script

SCONTROL = """\
#!/bin/bash
if [ "$1 $2" = "show job" ] && [ "$(cat asked 2>/dev/null | wc -l)" -lt "${SILENT:-0}" ]; then
  echo >>asked
  exit 1
fi
# A controller that is gone from the first requeue on, for so many of them.
[ "$1" != show ] || [ ! -e unreached ] || exit 1
if [ "$1" = requeue ] && [ "$(cat unreached 2>/dev/null | wc -l)" -lt "${UNREACHED:-0}" ]; then
  echo >>unreached
  exit 1
fi
preempted="StartTime=2026-01-02T03:04:05 PreemptTime=${PREEMPTED:-None}"
[ "$1 $2" != "show job" ] || echo "JobId=71 JobState=${STATE:-RUNNING} $preempted A="
[ "$1 $2" != "show node" ] || printf "%b" "$NODES"
[ "$1" = requeue ] || exit 0
echo "$2" >>requeued
exit "${REFUSED:-0}"
"""
# A start loads a checkpoint, writes its step, if it gets further, and ends with a code.
PROGRAM = (
    'if [ -n "$FAILED" ]; then echo "0 $FAILED $CODE 1.5" >"$HPCTRAIN_FAILURE_FILE"; fi; '
    'if [ -n "$LOADED" ]; then echo "$LOADED" >"$HPCTRAIN_CHECKPOINTS/resumed"; '
    'echo "${LOADED% *}" >"$HPCTRAIN_CHECKPOINTS/step"; fi; '
    'if [ -n "$STEP" ]; then mkdir -p "$HPCTRAIN_CHECKPOINTS"; '
    'echo "$STEP" >"$HPCTRAIN_CHECKPOINTS/step"; fi; printf "%s\\n" "$SAY"; exit "$CODE"'
)


def save(script: Script, path: Path, *runs: Path) -> Path:
    """Write a script, with its runtime beside it and in folders of runs; return its path."""
    path.write_text(script.text)
    for folder in (path.parent, *runs):
        for name, text in script.beside:
            (folder / name).write_text(text)
    return path


class Job:
    """Starts one job several times, as Slurm does after each requeue."""

    def __init__(self, folder: Path, script: Script) -> None:
        self.folder, self.starts = folder, 0
        (folder / "bin").mkdir()
        (folder / "bin" / "scontrol").write_text(SCONTROL)
        (folder / "bin" / "scontrol").chmod(0o755)
        (folder / "bin" / "sleep").symlink_to("/bin/true")
        save(script, folder / "job.sbatch")

    def start(self, code: int, step: int | None = None, **extra: str) -> tuple[str, bool]:
        """Return what the start prints, and whether it queues the job again."""
        asked = self.folder / "requeued"
        asked.unlink(missing_ok=True)
        environment = {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "SLURM_JOB_ID": "71",
            "SLURM_JOB_NODELIST": "localhost",
            "SLURM_RESTART_COUNT": str(self.starts),
            "CODE": str(code),
            "STEP": "" if step is None else str(step),
            "SAY": "",
            "FAILED": "",
            "LOADED": "",
            **extra,
        }
        self.starts += 1
        done = subprocess.run(
            ["bash", "job.sbatch", "."],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == code
        self.asked = asked.read_text() if asked.exists() else ""
        return done.stdout + done.stderr, bool(self.asked)

    def rows(self) -> list[dict[str, Any]]:
        lines = (self.folder / "restarts.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]
