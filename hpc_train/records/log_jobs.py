"""Log files -> jobs: which files one job wrote, by the names that launchers and Slurm give them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hpc_train.records.find_logs import rank_of

# torchrun --log-dir: RUN/attempt_0/3/stderr.log, with a number for each local rank.
_ATTEMPT = re.compile(r"^attempt_\d{1,6}$")
# `job.out` and `job.err`, `job.o4711` and `job.e4711`, `stdout` and `stderr`, packed or not.
_ERRORS = re.compile(r"(?:(?<=\.)err|(?<=\.)stderr|(?<=\.)e(?=\d+(?:\.|$))|^stderr)")
_OUTPUT = {"err": "out", "stderr": "stdout", "e": "o"}


def jobs_of(files: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the files of each job, in their order: a file is a job by itself, but for a few.

    One job are the files of a folder with files of several ranks, those of torchrun's log folder,
    and the two of standard output and standard error. The key is the file, or the folder.
    """
    ranks = Counter(file.parent for file in files if rank_of(file) is not None)
    there = set(files)
    jobs: dict[Path, list[Path]] = {}
    for file in files:
        jobs.setdefault(_key(file, ranks, there), []).append(file)
    return jobs


def _key(file: Path, ranks: Counter[Path], there: set[Path]) -> Path:
    for folder in file.parents:
        if _ATTEMPT.match(folder.name):
            return folder.parent
    if ranks[file.parent] > 1:
        return file.parent
    output = file.with_name(_ERRORS.sub(lambda end: _OUTPUT[end[0]], file.name, count=1))
    return output if output in there else file
