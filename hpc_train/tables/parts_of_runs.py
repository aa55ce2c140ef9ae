"""A study and its records -> parts with some of its runs, which limit the memory that is needed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.tables.record_arrays import RecordArrays, TextCodes

# Large enough that the overhead of a part is negligible.
_RUNS, _RECORDS = 5_000, 500_000


def parts_of(
    study: ExpectedStudy, fields: RecordArrays
) -> Iterator[tuple[ExpectedStudy, RecordArrays]]:
    """Yield parts of a study with some of its runs and their records.

    The first part has the records of runs that the study does not list.
    """
    runs, code = len(study.runs), fields.run.codes
    size = max(_RUNS, _RECORDS * runs // max(len(fields.value), 1))
    if runs <= size:
        yield study, fields
        return
    part = np.where(code < runs, code // size, 0)
    for number, start in enumerate(range(0, runs, size)):
        own = slice(start, start + size)
        some = msgspec.structs.replace(study, runs=study.runs[own])
        chosen = fields.take(np.flatnonzero(part == number))
        names = [*fields.run.names[own], *fields.run.names[runs:]]
        codes = chosen.run.codes.astype(np.int64) - start
        # Those of runs that the study does not list come after its own.
        codes = np.where(chosen.run.codes < runs, codes, chosen.run.codes - runs + len(some.runs))
        yield some, chosen._replace(run=TextCodes(codes, names))
