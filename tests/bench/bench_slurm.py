"""hpctrain on a real Slurm, beside Slurm's own commands and submitit: submit, ask, start.

Needs root, for `hpctrain lab`: a lab that is up is used, else one is made and removed again. What
is compared takes turns, so that other load hits both alike.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.model.value import Value
from tests.bench.about import machine
from tests.bench.comparison import Row, table
from tests.bench.place import HPCTRAIN, NoLab, Place, place, tomorrow

STUDY = """\
name: {name}
scaling: strong
repetitions: {repetitions}
axes: {{env.X: [{values}]}}
job:
  command: ["true"]
  launcher: single
  resources: {{cpus_per_task: 1, gpus_per_node: 0, time: 1m}}
"""
RANK = 'echo "$EPOCHREALTIME" >"$BENCH_STAMPS/rank"'
JOB = """\
name: {name}
command: [bash, -c, {rank}]
launcher: srun
resources: {{tasks_per_node: 1, cpus_per_task: 1, gpus_per_node: 0, time: 1m}}
"""
MINIMAL = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --time=1
srun --nodes=1 --ntasks=1 bash -c {rank}
"""
# bash sources it before the first line of a batch script; the shells in the job need not.
BEGIN = 'unset BASH_ENV\necho "$EPOCHREALTIME" >"$BENCH_STAMPS/begin"\n'
LOOP = 'for script in scripts/*.sbatch; do sbatch "$script"; done'
SUBMITIT = """\
import sys, submitit
executor = submitit.AutoExecutor("submitit", cluster="slurm")
executor.update_parameters(name=sys.argv[1], timeout_min=1, cpus_per_task=1, gpus_per_node=0)
for number in range(int(sys.argv[2])):
    executor.submit(print, number)
"""
SPY = """\
#!/bin/bash
printf '%s\\0' "$@" >"$BENCH_CALLS/${{0##*/}}.$$"
exec {real} "$@"
"""


class Size(Value, frozen=True, kw_only=True):
    """How much is measured."""

    jobs: int
    points: int
    repetitions: int
    rounds: int
    starts: int


FULL = Size(jobs=200, points=100, repetitions=10, rounds=5, starts=10)
QUICK = Size(jobs=20, points=10, repetitions=10, rounds=2, starts=3)


def write_study(at: Place, points: int, repetitions: int) -> None:
    values = ", ".join(map(str, range(points)))
    text = STUDY.format(name=at.name, values=values, repetitions=repetitions)
    (at.folder / "study.yaml").write_text(text, encoding="utf-8")


def submitting(at: Place, size: Size) -> Iterator[Row]:
    """Submit the scripts of a study: one hpctrain, a loop of sbatch; then as many functions."""
    write_study(at, size.jobs, 1)
    at.run([*HPCTRAIN, "render", "study.yaml", "--site", at.site, "-o", "scripts"])
    commands = {
        "hpctrain": [*HPCTRAIN, "submit", "study.yaml", "--site", at.site],
        "sbatch": ["bash", "-c", LOOP],
        "submitit": [sys.executable, "-c", SUBMITIT, at.name, str(size.jobs)],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    pair = ["hpctrain", "sbatch"]
    # submitit waits 0.2 s between two jobs, so one round of it tells all.
    for name in [*(pair + pair[::-1]) * (size.rounds // 2), *pair * (size.rounds % 2), "submitit"]:
        times[name].append(at.seconds(commands[name]))
        if len(at.jobs()) != size.jobs:
            raise SystemExit(f"{name}: {len(at.jobs())} jobs are queued, not {size.jobs}")
        at.clear()
    ours, what = times["hpctrain"], f"submit {size.jobs} jobs"
    yield Row(
        what=what,
        ours=ours,
        beside="a bash loop of sbatch over the same scripts",
        others=times["sbatch"],
        compare=lambda ours, other: ours / other,
        form="{:.2f}x",
        # Starting Python weighs too much on a few.
        budget=1.5 if size == FULL else None,
    )
    yield Row(
        what=what,
        ours=[statistics.median(ours)],
        beside=f"submitit: submit() of {size.jobs} functions in one process",
        others=times["submitit"],
        compare=lambda ours, other: other / ours,
        form="{:.1f}x faster",
    )


def asking(at: Place, size: Size) -> Iterator[Row]:
    """Ask how a queued study stands, and ask squeue alone for the same jobs."""
    count = size.points * size.repetitions
    write_study(at, size.points, size.repetitions)
    at.run([*HPCTRAIN, "submit", "study.yaml", "--site", at.site])
    status = [*HPCTRAIN, "status", at.name, "--json"]
    questions, squeue = spied(at, status, count)
    ours, others = [], []
    for _ in range(2 * size.rounds):
        ours.append(at.seconds(status))
        others.append(at.seconds(squeue, LC_ALL="C", SLURM_BITSTR_LEN="0"))
    yield Row(
        what=f"status --json of {count} queued runs, {size.points} arrays",
        ours=ours,
        beside="the same squeue alone",
        others=others,
        budget=0.5,
    )
    yield Row(
        what="commands of Slurm in one status",
        ours=[questions],
        beside="one squeue",
        others=[1],
        unit="",
        form="{:+.0f}",
        budget=0,
    )


def spied(at: Place, status: Sequence[str], count: int) -> tuple[int, list[str]]:
    """Return how many commands of Slurm one status calls, and its squeue with all arguments."""
    spies, calls = at.folder / "spies", at.folder / "calls"
    spies.mkdir()
    calls.mkdir()
    for name in ("squeue", "sacct", "scontrol", "sinfo"):
        (spies / name).write_text(SPY.format(real=shutil.which(name)), encoding="utf-8")
        (spies / name).chmod(0o755)
    path = f"{spies}:{at.environment['PATH']}"
    runs = json.loads(at.run(status, PATH=path, BENCH_CALLS=str(calls)))["runs"]
    if [run["state"] for run in runs] != ["PENDING"] * count:
        raise SystemExit(f"not every one of {count} runs is queued")
    found = sorted(calls.iterdir())
    squeue = next(call for call in found if call.name.startswith("squeue."))
    return len(found), ["squeue", *squeue.read_text(encoding="utf-8").split("\0")[:-1]]


def starting(at: Place, size: Size) -> Iterator[Row]:
    """Run one rank with our script, and with the shortest one that does the same."""
    words = {"name": at.name, "rank": shlex.quote(RANK)}
    (at.folder / "job.yaml").write_text(JOB.format(**words), encoding="utf-8")
    (at.folder / "minimal.sbatch").write_text(MINIMAL.format(**words), encoding="utf-8")
    (at.folder / "begin.sh").write_text(BEGIN, encoding="utf-8")
    at.run([*HPCTRAIN, "render", "job.yaml", "--site", at.site, "-o", "job.sbatch"])
    times: dict[str, list[float]] = {"job.sbatch": [], "minimal.sbatch": []}
    for turn in range(size.starts):
        for script in sorted(times, reverse=turn % 2 == 1):
            times[script].append(seconds_to_rank(at, script))
    yield Row(
        what="first line of the script to first line of the rank, launcher srun",
        ours=times["job.sbatch"],
        beside="a script that is one srun",
        others=times["minimal.sbatch"],
        budget=0.2,
    )


def seconds_to_rank(at: Place, script: str) -> float:
    """Run a job alone; return the time between its two stamps."""
    stamps = at.folder / "stamps"
    stamps.mkdir()
    variables = {"BENCH_STAMPS": str(stamps), "BASH_ENV": str(at.folder / "begin.sh")}
    at.run(["sbatch", "--output=slurm.out", script], **variables)
    at.wait()
    begin, rank = (float((stamps / name).read_text()) for name in ("begin", "rank"))
    shutil.rmtree(stamps)
    return rank - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little, to see whether it works")
    parser.add_argument("-o", "--output", type=Path, help="write Markdown to this file, too")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    command = shlex.join(["python", "-m", "tests.bench.bench_slurm", *sys.argv[1:]])
    try:
        with place() as at:
            with tomorrow(at) as waiting:
                rows = [*submitting(waiting, size), *asking(waiting, size)]
            rows += starting(at, size)
            about = machine(at)
    except NoLab as reason:
        sys.exit(str(reason)) if options.output else print(reason)
        return
    print(about, "", table(rows), "", f"made by: {command}", sep="\n")
    if options.output:
        text = f"# hpctrain on a real Slurm\n\n{about}\n\n{table(rows)}\n\nMade by `{command}`.\n"
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
