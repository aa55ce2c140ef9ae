"""`hpctrain retry`, killed with -9 at random moments on a real Slurm: is a run lost or doubled?

Needs root, for `hpctrain lab`: a lab that is up is used, else one is made and removed again. A
study whose runs fail is copied once for each round; each round retries a copy and kills the
command, in every second round with its children, sbatch among them. Two of three moments are even
over the time in which the study is locked, the rest over the whole command. Then each copy is asked
after and retried until nothing is left to do, and checked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.model.run import RunFolder
from hpc_train.model.value import Value
from hpc_train.submissions.slurm.job_states import WITHIN_S
from tests.bench.about import machine
from tests.bench.copies import Copy, copies
from tests.bench.place import HPCTRAIN, NoLab, Place, place

STUDY = """\
name: {name}
scaling: strong
repetitions: 2
axes: {{env.X: [1, 2, 3, 4]}}
job:
  command: [bash, -c, 'echo >>"$HPCTRAIN_RUN/ran"; test -e {flag}']
  launcher: single
  resources: {{cpus_per_task: 1, gpus_per_node: 0, time: 1m}}
"""
RUNS = 8
COLUMNS = (
    "seed",
    "rounds",
    "killed",
    "before the first folder",
    "among folders",
    "before the first sbatch",
    "among sbatch",
    "after the last",
    "too late",
    "UNKNOWN at once",
    "never accepted",
    "lost",
    "doubled",
    "UNKNOWN at the end",
    "left behind",
)


class Moments(Value, frozen=True, kw_only=True):
    """How long a retry takes in all, and from the moment when it locks the study."""

    whole_s: float
    locked_s: float


def failed_study(at: Place) -> Path:
    """Run a study whose runs fail, and let them succeed from then on; return its folder."""
    flag = at.folder / "flag"
    text = STUDY.format(name=at.name, flag=flag)
    (at.folder / "study.yaml").write_text(text, encoding="utf-8")
    at.run([*HPCTRAIN, "submit", "study.yaml", "--site", at.site])
    at.wait()
    first = Copy(at=at, number=0)
    (at.folder / "results").rename(first.results)
    if [row["state"] for row in first.rows()] != ["FAILED"] * RUNS:
        raise SystemExit(f"not every run of {first.home} has failed")
    flag.touch()
    return first.home


def start(copy: Copy) -> subprocess.Popen[bytes]:
    """Start a retry in a session of its own."""
    return subprocess.Popen(
        copy.call("retry"),
        cwd=copy.at.folder,
        env=copy.at.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def await_lock(copy: Copy, process: subprocess.Popen[bytes]) -> None:
    """Wait until a retry has opened the lock of its study."""
    while not (copy.home / ".submit.lock").exists() and process.poll() is None:
        time.sleep(0.0005)


def measure(retried: Sequence[Copy]) -> Moments:
    """Measure retries that nobody kills."""
    whole, locked = [], []
    for copy in retried:
        begun = time.perf_counter()
        process = start(copy)
        await_lock(copy, process)
        middle = time.perf_counter()
        if process.wait() != 0:
            raise SystemExit(f"retry of {copy.home} failed")
        whole.append(time.perf_counter() - begun)
        locked.append(time.perf_counter() - middle)
    return Moments(whole_s=statistics.median(whole), locked_s=statistics.median(locked))


def kill(copy: Copy, moments: Moments, luck: random.Random) -> str:
    """Retry, and kill it at some moment; return what it was doing."""
    process = start(copy)
    if copy.number % 3:
        await_lock(copy, process)
        time.sleep(luck.uniform(0, moments.locked_s))
    else:
        time.sleep(luck.uniform(0, moments.whole_s))
    if process.poll() is None:
        (os.killpg if copy.number % 2 else os.kill)(process.pid, signal.SIGKILL)
    return "too late" if process.wait() == 0 else stage(copy.home)


def stage(home: Path) -> str:
    """Tell from the files what a killed retry had done."""
    new = [RunFolder(path=path) for path in home.glob("*.2")]
    asked = [run for run in new if run.submission.exists()]
    known = [run for run in asked if b'"native_id":"_' not in run.submission.read_bytes()]
    if len(new) < RUNS:
        return "among folders" if new or any(home.glob(".new-*")) else "before the first folder"
    if not asked:
        return "before the first sbatch"
    return "after the last" if len(known) == RUNS else "among sbatch"


def recover(found: Sequence[Copy]) -> Counter[str]:
    """Ask and retry, as whoever was interrupted does, at once and when all doubt is over."""
    counts: Counter[str] = Counter()
    killed = time.monotonic()
    doubtful = []
    for copy in found:
        copy.rows()
        copy.retry()
        unknown = sum(row["state"] == "UNKNOWN" for row in copy.rows())
        counts["UNKNOWN at once"] += unknown
        doubtful += [copy] if unknown else []
    found[0].at.wait()
    if doubtful:
        time.sleep(max(0.0, WITHIN_S + 1 - (time.monotonic() - killed)))
    for copy in doubtful:
        copy.retry()
    found[0].at.wait()
    return counts


def check(copy: Copy) -> Counter[str]:
    """Count what should not be, by what the jobs themselves wrote and by what `status` says."""
    places: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in copy.rows():
        places[row["axes"]["env.X"], row["repetition"]].append(row)
    counts: Counter[str] = Counter()
    for attempts in places.values():
        later = [row for row in attempts if row["attempt"] > 1]
        ran = [copy.home / row["run"] / "ran" for row in later]
        counts["lost"] += sum(row["state"] == "COMPLETED" for row in later) < 1
        counts["doubled"] += sum(len(file.read_text()) for file in ran if file.exists()) > 1
        counts["UNKNOWN at the end"] += sum(row["state"] == "UNKNOWN" for row in attempts)
        counts["never accepted"] += sum(row["state"] == "LOST" for row in attempts)
    counts["lost"] += RUNS - len(places)
    counts["left behind"] += sum(1 for _ in copy.home.glob(".[ng]*-*"))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="add the numbers to this table, too")
    options = parser.parse_args()
    counts: Counter[str] = Counter(seed=options.seed, rounds=options.rounds)
    luck = random.Random(options.seed)
    try:
        with place() as at:
            original = failed_study(at)
            moments = measure(copies(at, original, range(1, 6)))
            at.wait()
            killed = copies(at, original, range(6, 6 + options.rounds))
            for copy in killed:
                counts[kill(copy, moments, luck)] += 1
            counts["killed"] = options.rounds - counts["too late"]
            counts += recover(killed)
            for copy in killed:
                counts += check(copy)
            about = machine(at)
    except NoLab as reason:
        sys.exit(str(reason))
    print(about, moments, json.dumps(counts, indent=1), sep="\n")
    if options.output:
        record(options.output, about, counts)


def record(file: Path, about: str, counts: Counter[str]) -> None:
    """Add a row to a table, or begin one."""
    head = f"{about}\n\n| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}\n"
    text = file.read_text(encoding="utf-8") if file.exists() else head
    row = f"| {' | '.join(str(counts[name]) for name in COLUMNS)} |\n"
    file.write_text(text + row, encoding="utf-8")


if __name__ == "__main__":
    main()
