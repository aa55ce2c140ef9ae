"""Many runs -> parts of them, which limits the memory for their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from hpc_train.model.scaling_input import ExpectedStudy
from hpc_train.tables.record_arrays import RecordArrays

# Large enough that the overhead of a part is negligible.
_RUNS = 5_000


def parts(
    study: ExpectedStudy, fields: RecordArrays
) -> Iterator[tuple[ExpectedStudy, RecordArrays]]:
    """Yield parts of a study with some of its runs and their records.

    The first part has the records of runs that the study does not list.
    """
    if len(study.runs) <= _RUNS:
        yield study, fields
        return
    part_of = {one.run_id: place // _RUNS for place, one in enumerate(study.runs)}
    names = [part_of.get(name, 0) for name in fields.run.names]
    part = np.array([*names, 0], dtype=np.int32)[fields.run.codes]
    for number, start in enumerate(range(0, len(study.runs), _RUNS)):
        some = msgspec.structs.replace(study, runs=study.runs[start : start + _RUNS])
        yield some, fields.take(np.flatnonzero(part == number))


def joined(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Concatenate the columns of tables, which are arrays or lists."""
    if len(tables) == 1:
        return dict(tables[0])
    return {name: _joined([table[name] for table in tables]) for name in tables[0]}


def _joined(columns: Sequence[Any]) -> Any:
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    return list(chain.from_iterable(columns))
