"""Plain scripts: rendered as by the command, and run with the programs of a cluster."""

import os
import subprocess
from pathlib import Path

import msgspec

from hpc_train.scripts.prepare import prepare, request_of

# One write for each rank, so that their lines do not mix.
SAY = r'printf "%s|%s|%s|%s|%s|%s|\n" "$RANK" "$WORLD_SIZE" "$NOTE" "$OMP_NUM_THREADS" "$1" "$2"'
JOB = f"""\
name: demo
command: [bash, -c, '{SAY}', say, a b, $x]
env: {{NOTE: "it's, a b"}}
resources: {{nodes: 2, tasks_per_node: 1, cpus_per_task: 3}}
"""


def plain(file: Path, site: str, *settings: str) -> tuple[str, ...]:
    request = request_of(file, (), site, {}, settings)
    prepared = prepare(msgspec.structs.replace(request, plain=True))
    assert prepared.allocation is None
    return tuple(point.script.text for point in prepared.points)


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.sbatch").write_text(script)
    here = {"SLURM_JOB_NODELIST": "localhost", "NOTES": str(folder / "notes")}
    return subprocess.run(
        ["bash", "job.sbatch"],
        cwd=folder,
        env={**os.environ, **here, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=240,
    )
