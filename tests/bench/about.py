"""What a benchmark's numbers belong to: the day, the commit, the machine, its disk."""

from __future__ import annotations

import datetime
import shutil
import time
from importlib.metadata import version

from hpc_train.runs.provenance import provenance
from tests.bench.place import ROOT, Place


def machine(at: Place) -> str:
    """Return what the numbers belong to."""
    facts = provenance(ROOT, [])
    git = facts["git"] or {"commit": "no git", "dirty": False}
    cores = len(at.run(["grep", "^processor", "/proc/cpuinfo"]).splitlines())
    return (
        f"{datetime.date.today()}, hpctrain {facts['hpctrain']} "
        f"({git['commit'][:10]}{' and changes' if git['dirty'] else ''})\n"
        f"{facts['cpu']}, {cores} cores, Linux {facts['kernel']}, Python {facts['python']}; "
        f"the runs' folders on {at.run(['stat', '-f', '-c', '%T', '.']).strip()}, "
        f"where a new file takes {new_file_ms(at):.2f} ms\n"
        f"{at.run(['sbatch', '--version']).strip()} made by `hpctrain lab` on this machine, "
        f"submitit {version('submitit')}"
    )


def new_file_ms(at: Place) -> float:
    """Return the milliseconds that a new file takes: a run is six of them, an sbatch none."""
    folder, count = at.folder / "files", 200
    folder.mkdir()
    started = time.perf_counter()
    for number in range(count):
        (folder / str(number)).touch()
    took = time.perf_counter() - started
    shutil.rmtree(folder)
    return took / count * 1000
