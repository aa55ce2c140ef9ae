"""Runs -> batches: the runs of one call of sbatch, a single run or a job array."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpc_train.model.run import RunFolder, RunName
from hpc_train.model.value import Value
from hpc_train.submissions.repetition_groups import repetition_groups


class SbatchCall(Value, frozen=True, kw_only=True):
    """One submission: options of sbatch, the script (the file and its text), and its arguments.

    `elements` are the indices of an array's tasks, equal to the numbers of the repetitions; empty
    for a job that is not an array. `native_ids` maps each run to its part of the job.
    """

    runs: tuple[RunFolder, ...]
    script: Path
    text: str
    output: str
    arguments: tuple[str, ...]
    elements: tuple[int, ...] = ()
    shared: bool = False

    def native_id(self, run: RunFolder, job: str) -> str:
        """Return the id of a run's part of the job; `job` may be empty while it is unknown."""
        name = RunName.parse(run.run_id)
        return f"{job}_{name.repetition}" if self.elements and name else job


def batches(runs: Sequence[RunFolder], array_size: int) -> tuple[SbatchCall, ...]:
    """Combine the repetitions of a point into an array, up to the largest allowed index.

    `array_size` is Slurm's MaxArraySize: the largest number plus one; 0 where there are no arrays.
    Runs share an array only if their scripts are byte-identical.
    """
    groups = repetition_groups(runs, lambda name: name.repetition < array_size)
    return tuple(_batch(group, text) for group, text in groups)


def allocation(home: Path, runs: Sequence[RunFolder], script: Path, text: str) -> SbatchCall:
    """Return the job that runs all of them, one after the other."""
    return SbatchCall(
        runs=tuple(runs),
        script=script.absolute(),
        text=text,
        output=_plain(str(script.with_suffix(".out").absolute())),
        arguments=(str(home.absolute()),),
        shared=True,
    )


def _batch(runs: Sequence[RunFolder], text: str) -> SbatchCall:
    first = runs[0]
    folder = str(first.path.absolute())
    name = RunName.parse(first.run_id)
    if len(runs) == 1 or name is None:
        return SbatchCall(
            runs=tuple(runs),
            script=first.script.absolute(),
            text=text,
            output=_plain(f"{folder}/logs/job.out"),
            arguments=(folder,),
        )
    before = folder.removesuffix(f"{name.repetition}{name.ending}")
    elements = sorted(found.repetition for run in runs if (found := RunName.parse(run.run_id)))
    return SbatchCall(
        runs=tuple(runs),
        script=first.script.absolute(),
        text=text,
        output=f"{_plain(before)}%a{_plain(name.ending)}/logs/job.out",
        arguments=(before, name.ending),
        elements=tuple(elements),
    )


def _plain(text: str) -> str:
    """Escape a path, so that sbatch does not expand it (man sbatch, filename pattern)."""
    return text.replace("%", "%%")
