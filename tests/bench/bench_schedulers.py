"""hpctrain on a small PBS and on machines by ssh, beside the bare commands of the same round.

PBS: `submit` of a study, and a loop of `qsub` over the same scripts (budget 1.5x); how many qstat
one `status` starts. SSH, as root: how many connections two hosts accept for 100 calls and for runs
(goal: one each). What is compared takes turns.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpc_train.submissions.hosts.transport import at_once, call
from tests.bench.comparison import Row, table
from tests.bench.place import HPCTRAIN, ROOT
from tests.servers.hosts import SshHosts, running_hosts
from tests.servers.pbs import RunningPbs, running

STUDY = """\
name: study
scaling: strong
repetitions: 1
axes: {{env.X: [{values}]}}
job:
  command: ["true"]
  launcher: single
  resources: {{cpus_per_task: 1, time: 1m}}
"""
LOOP = 'for script in scripts/*; do qsub "$script"; done'
# It has all cores, so that what is submitted after it only waits.
FIRST = "#!/bin/bash\n#PBS -l select=2:ncpus=4\n#PBS -l walltime=01:00:00\nsleep 3000\n"
SPY = '#!/bin/bash\necho call >>{log}\nexec {real} "$@"\n'


def run(command: Sequence[str], folder: Path) -> float:
    """Run a command that has to work; return the seconds that it takes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr.strip()[-500:]}")
    return time.perf_counter() - started


@contextmanager
def pbs() -> Iterator[RunningPbs]:
    """Start a small PBS whose nodes are in use."""
    with (
        tempfile.TemporaryDirectory(prefix="hpct-") as place,
        pytest.MonkeyPatch.context() as patch,
        running(Path(place), patch) as server,
    ):
        (server.work / "first.sh").write_text(FIRST)
        run(["qsub", "first.sh"], server.work)
        yield server


def waiting_jobs(folder: Path) -> list[str]:
    """Return the jobs that the benchmark submitted."""
    text = subprocess.run(["qstat"], cwd=folder, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()[2:]]
    return [words[0] for words in lines if words[1] != "first.sh"]


def submitting(server: RunningPbs, jobs: int, rounds: int) -> Row:
    """Compare one `submit` of a study with a loop of qsub."""
    folder = server.work
    (folder / "study.yaml").write_text(STUDY.format(values=", ".join(map(str, range(jobs)))))
    site = str(server.profile)
    run([*HPCTRAIN, "render", "study.yaml", "--site", site, "-o", "scripts"], folder)
    commands = {
        "hpctrain": [*HPCTRAIN, "submit", "study.yaml", "--site", site],
        "qsub": ["bash", "-c", LOOP],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds):
        for name in sorted(commands, reverse=turn % 2 == 1):
            times[name].append(run(commands[name], folder))
            found = waiting_jobs(folder)
            if len(found) != jobs:
                raise SystemExit(f"{name}: {len(found)} jobs are queued, not {jobs}")
            run(["qdel", *found], folder)
            shutil.rmtree(folder / "results", ignore_errors=True)
    return Row(
        what=f"submit {jobs} jobs to PBS",
        ours=times["hpctrain"],
        beside="a bash loop of qsub over the same scripts",
        others=times["qsub"],
        compare=lambda ours, other: ours / other,
        form="{:.2f}x",
        budget=1.5,
    )


def asking(server: RunningPbs) -> Row:
    """Count the commands of PBS that one `status` starts."""
    folder = server.work
    run([*HPCTRAIN, "submit", "study.yaml", "--site", str(server.profile)], folder)
    spies, log = folder / "spies", folder / "calls"
    spies.mkdir()
    for name in ("qstat", "pbsnodes"):
        (spies / name).write_text(SPY.format(log=log, real=shutil.which(name)))
        (spies / name).chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{spies}:{before}"
    run([*HPCTRAIN, "status", "study"], folder)
    os.environ["PATH"] = before
    return count_row("commands of PBS in one status", [len(log.read_text().split())], "one qstat")


def count_row(what: str, counts: Sequence[float], beside: str) -> Row:
    """Return the row of a number that should be one."""
    return Row(
        what=what,
        ours=counts,
        beside=beside,
        others=[1] * len(counts),
        unit="",
        form="{:+.0f}",
        budget=0,
    )


@contextmanager
def ssh() -> Iterator[SshHosts]:
    """Start two machines that ssh reaches."""
    with (
        tempfile.TemporaryDirectory(prefix="hpct-") as place,
        pytest.MonkeyPatch.context() as patch,
        running_hosts() as found,
    ):
        patch.setenv("XDG_RUNTIME_DIR", place)
        patch.setenv("PATH", f"{found.folder}/bin:{os.environ['PATH']}")
        yield found


def connecting(lab: SshHosts, calls: int) -> Row:
    """Count the connections that each host accepts for calls, eight of them at once."""
    logs = [lab.log(host) for host in lab.hosts]

    def accepted() -> list[int]:
        return [log.read_text(errors="replace").count("Accepted publickey") for log in logs]

    before = accepted()
    at_once(lambda name: call(name, "look"), [host.name for host in lab.hosts] * calls)
    counts = [now - old for now, old in zip(accepted(), before, strict=True)]
    return count_row(f"connections of a host for {calls} calls", counts, "one")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100, help="jobs of a submission")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with pbs() as server:
        rows = [submitting(server, options.jobs, options.rounds), asking(server)]
    if os.geteuid() == 0:
        with ssh() as lab:
            rows.append(connecting(lab, options.jobs))
    print(table(rows))
    print(f"made by: python -m tests.bench.bench_schedulers {' '.join(sys.argv[1:])}")


if __name__ == "__main__":
    main()
