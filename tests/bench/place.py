"""Where a benchmark meets the lab: a folder, a clean environment, and jobs that all have one name.

What was made is removed however it ends: the jobs, the reservation, the folder, and the lab if it
was made for this.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hpc_train.lab import state_file
from hpc_train.lab.state_file import Lab
from hpc_train.model.value import Value
from hpc_train.subprocesses import clean_environment

ROOT = Path(__file__).resolve().parents[2]
HPCTRAIN = [sys.executable, "-m", "hpc_train"]


class NoLab(Exception):
    """There is no lab here, and none can be made."""


class Place(Value, frozen=True, kw_only=True):
    """A folder that the lab's nodes see, an environment, and the name of all our jobs."""

    folder: Path
    name: str
    site: str
    environment: Mapping[str, str]

    def run(self, command: Sequence[str], **extra: str) -> str:
        """Run a command that has to work; return what it prints."""
        environment = {**self.environment, **extra}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"{shlex.join(command)}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def seconds(self, command: Sequence[str], **extra: str) -> float:
        """Return how long a command takes, from its start to its end."""
        started = time.perf_counter()
        self.run(command, **extra)
        return time.perf_counter() - started

    def jobs(self) -> list[str]:
        """Return the ids of our jobs that have not ended; an array counts once."""
        lines = self.run(["squeue", "--noheader", "--format=%A %j"]).splitlines()
        return [line.split()[0] for line in lines if line.split()[1:] == [self.name]]

    def wait(self) -> None:
        """Wait until our jobs have ended."""
        deadline = time.monotonic() + 120
        while mine := self.jobs():
            if time.monotonic() > deadline:
                raise SystemExit(f"these jobs do not end: {mine[:5]}")
            time.sleep(0.2)

    def clear(self) -> None:
        """Cancel our jobs, remove what was written, and let Slurm come to rest."""
        if mine := self.jobs():
            self.run(["scancel", *mine])
            self.wait()
            # slurmctld still tells the accounting of what was cancelled.
            time.sleep(2)
        for folder in ("results", "submitit"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)


@contextmanager
def place() -> Iterator[Place]:
    """Make a place on the lab.

    Raises:
        NoLab: there is none, and none can be made.
    """
    with _lab() as lab, tempfile.TemporaryDirectory(prefix="hpctrain-bench-") as folder:
        # Neither an outer job nor somebody's settings may change what is measured.
        ours = ("HPCTRAIN_", "SBATCH_", "SQUEUE_", "SUBMITIT_")
        kept = clean_environment(os.environ).items()
        environment = {name: value for name, value in kept if not name.startswith(ours)}
        environment |= {
            "SLURM_CONF": f"{lab.settings.folder}/slurm.conf",
            "PYTHONPATH": str(ROOT),
        }
        found = Place(
            folder=Path(folder),
            name=f"bench-{os.getpid()}",
            site=lab.profile,
            environment=environment,
        )
        try:
            yield found
        finally:
            found.clear()


@contextmanager
def _lab() -> Iterator[Lab]:
    made = state_file.read() is None
    if made:
        done = subprocess.run([*HPCTRAIN, "lab", "up"], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise NoLab(done.stderr.strip())
    try:
        lab = state_file.read()
        if lab is None:
            raise NoLab("the lab has gone")
        yield lab
    finally:
        if made:
            subprocess.run([*HPCTRAIN, "lab", "down"], cwd=ROOT, check=True, capture_output=True)


@contextmanager
def tomorrow(at: Place) -> Iterator[Place]:
    """Queue all jobs for a reservation of tomorrow, so that they only wait.

    Every sbatch takes it from its environment, whoever calls it.
    """
    facts = ["starttime=now+1days", "duration=60", "users=root", "nodecnt=1", "flags=IGNORE_JOBS"]
    name = f"reservationname={at.name}"
    at.run(["scontrol", "create", "reservation", name, *facts])
    waiting = {**at.environment, "SBATCH_RESERVATION": at.name}
    try:
        yield Place(folder=at.folder, name=at.name, site=at.site, environment=waiting)
    finally:
        at.clear()
        at.run(["scontrol", "delete", name])
