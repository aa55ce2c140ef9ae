"""RunColumns: the expected runs of tables as columns; what many of them share is stored once."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, overload

import msgspec

from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.table_records import Array


class RunColumns(Sequence[ExpectedRun]):
    """Runs, each of one of the `kinds`: sizes, axes, conditions and end, with their `kind` numbers.

    Each kind has a run. Name, repetition and duration differ from run to run and are columns.
    `kind`, `repetition` and `wall_s` (NaN if unknown) are arrays or lists. A run becomes an object
    only where it is read.
    """

    def __init__(
        self,
        kinds: Sequence[ExpectedRun],
        kind: Array,
        run_id: Sequence[str],
        repetition: Array,
        wall_s: Array,
    ) -> None:
        self.kinds, self.kind = kinds, kind
        self.run_id, self.repetition, self.wall_s = run_id, repetition, wall_s

    @classmethod
    def of(cls, runs: Sequence[ExpectedRun]) -> "RunColumns":
        """Return runs as columns; those of a list are each a kind of their own."""
        if isinstance(runs, RunColumns):
            return runs
        wall_s = [float("nan") if run.wall_s is None else run.wall_s for run in runs]
        names, numbers = [run.run_id for run in runs], [run.repetition for run in runs]
        return cls(runs, range(len(runs)), names, numbers, wall_s)

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
            return RunColumns(kinds, [new[number] for number in kind], *columns)
        kind, name, repetition, wall_s = (column[place] for column in self._columns())
        return self._run(kind, name, repetition, wall_s)

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
        return self.kind, self.run_id, self.repetition, self.wall_s

    def _run(self, kind: int, name: str, repetition: int, wall_s: float) -> ExpectedRun:
        known = float(wall_s) if wall_s == wall_s else None
        return msgspec.structs.replace(
            self.kinds[kind], run_id=name, repetition=int(repetition), wall_s=known
        )
