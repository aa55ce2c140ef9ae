"""RunColumns: the expected runs of tables as columns; what many of them share is stored once."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, NamedTuple, overload

import msgspec

from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.table_records import Array


class RunFields(NamedTuple):
    """What differs from run to run, each as an array or list; NaN where a number is unknown."""

    run_id: Sequence[str]
    repetition: Array
    wall_s: Array
    job_energy_j: Array


class RunColumns(Sequence[ExpectedRun]):
    """Runs, each of one of the `kinds`: sizes, axes, conditions and end, with their `kind` numbers.

    Each kind has a run. The `fields` differ from run to run; `kind` is an array or list. A run
    becomes an object only where it is read.
    """

    def __init__(self, kinds: Sequence[ExpectedRun], kind: Array, fields: RunFields) -> None:
        self.kinds, self.kind = kinds, kind
        self.run_id, self.repetition, self.wall_s, self.job_energy_j = fields

    @classmethod
    def of(cls, runs: Sequence[ExpectedRun]) -> "RunColumns":
        """Return runs as columns; those of a list are each a kind of their own."""
        if isinstance(runs, RunColumns):
            return runs
        fields = RunFields(
            run_id=[run.run_id for run in runs],
            repetition=[run.repetition for run in runs],
            wall_s=[_number(run.wall_s) for run in runs],
            job_energy_j=[_number(run.job_energy_j) for run in runs],
        )
        return cls(runs, range(len(runs)), fields)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.run_id)

    @overload
    def __getitem__(self, place: int) -> ExpectedRun: ...
    @overload
    def __getitem__(self, place: slice) -> "RunColumns": ...
    def __getitem__(self, place: int | slice) -> "ExpectedRun | RunColumns":
        """Return one run, or some."""
        if isinstance(place, slice):
            kind, *columns = (column[place] for column in self._columns())
            new = {number: n for n, number in enumerate(dict.fromkeys(kind))}
            kinds = [self.kinds[number] for number in new]
            return RunColumns(kinds, [new[number] for number in kind], RunFields(*columns))
        return self._run(*(column[place] for column in self._columns()))

    def __iter__(self) -> Iterator[ExpectedRun]:
        """Yield the runs."""
        return map(self._run, *self._columns())

    def __eq__(self, other: object) -> bool:
        """Whether the other sequence has the same runs."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def counted(self) -> Iterator[tuple[ExpectedRun, int]]:
        """Yield each kind with the number of its runs."""
        counts = Counter(self.kind.tolist() if hasattr(self.kind, "tolist") else self.kind)
        return ((kind, counts[number]) for number, kind in enumerate(self.kinds))

    def _columns(self) -> tuple[Any, ...]:
        return self.kind, self.run_id, self.repetition, self.wall_s, self.job_energy_j

    def _run(
        self, kind: int, name: str, repetition: int, wall_s: float, energy_j: float
    ) -> ExpectedRun:
        return msgspec.structs.replace(
            self.kinds[kind],
            run_id=name,
            repetition=int(repetition),
            wall_s=_known(wall_s),
            job_energy_j=_known(energy_j),
        )


def _number(known: float | None) -> float:
    return float("nan") if known is None else known


def _known(number: float) -> float | None:
    return None if isnan(number) else float(number)
