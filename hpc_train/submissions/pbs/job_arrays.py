"""Runs -> calls of qsub, each for a run or a job array; ids of arrays and of their subjobs.

PBS accepts only a range, `2-8:2`, of two indices at least; neither `2-2` nor `2,4,5`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.model.run import RunFolder, RunName
from hpc_train.model.value import Value
from hpc_train.submissions.repetition_groups import repetition_groups

# What PBS replaces by the index in the path of the output.
INDEX = "^array_index^"
_SUBJOB = re.compile(r"\A([0-9]{1,20})\[[0-9]{1,20}\]")


class QsubCall(Value, frozen=True, kw_only=True):
    """One submission: its runs, their script and folder, and the range of an array.

    `folder` has the mark `^array_index^` in place of the number of the repetition. An empty range
    means a job that is not an array.
    """

    runs: tuple[RunFolder, ...]
    script: Path
    folder: str
    indices: str = ""

    def native_id(self, run: RunFolder, job: str) -> str:
        """Return the id of a run's part of the job; `job` may be empty while it is unknown."""
        name = RunName.parse(run.run_id)
        if not self.indices or name is None:
            return job
        return subjob(job, f"_{name.repetition}") if job else f"_{name.repetition}"


def subjob(job: str, element: str) -> str:
    """Return the id of the subjob `_3` of `41[].server`: `41[3].server`; a plain job as it is."""
    return job.replace("[]", f"[{element[1:]}]", 1) if element else job


def array_of(job: str) -> str:
    """Return the id of the array of a subjob; any other job as it is."""
    return _SUBJOB.sub(r"\1[]", job)


def qsub_calls(runs: Sequence[RunFolder], array_size: int) -> tuple[QsubCall, ...]:
    """Combine the repetitions of a point into arrays of at most `array_size` subjobs."""
    calls: list[QsubCall] = []
    for group, _ in repetition_groups(runs, lambda _: True):
        by_number = {_repetition(run): run for run in group}
        for numbers in _ranges(sorted(by_number), array_size) if len(group) > 1 else ():
            calls.append(_call([by_number[number] for number in numbers], numbers))
        if len(group) == 1:
            calls.append(_call(group, ()))
    return tuple(calls)


def _repetition(run: RunFolder) -> int:
    name = RunName.parse(run.run_id)
    return name.repetition if name else 0


def _ranges(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Split ascending numbers into arithmetic progressions of at most `size` numbers."""
    start = 0
    while start < len(numbers):
        end = start + 1
        while end < len(numbers) and end - start < size and _fits(numbers, start, end):
            end += 1
        yield numbers[start:end]
        start = end


def _fits(numbers: Sequence[int], start: int, end: int) -> bool:
    step = numbers[start + 1] - numbers[start]
    return numbers[end] - numbers[end - 1] == step


def _call(runs: Sequence[RunFolder], numbers: Sequence[int]) -> QsubCall:
    first = runs[0]
    script, folder = first.script.absolute(), str(first.path.absolute())
    name = RunName.parse(first.run_id)
    if len(runs) == 1 or name is None:
        return QsubCall(runs=tuple(runs), script=script, folder=folder)
    step = numbers[1] - numbers[0]
    before = folder.removesuffix(f"{name.repetition}{name.ending}")
    return QsubCall(
        runs=tuple(runs),
        script=script,
        folder=f"{before}{INDEX}{name.ending}",
        indices=f"{numbers[0]}-{numbers[-1]}{f':{step}' if step > 1 else ''}",
    )
