"""A study and its records -> parts with some of its runs, which limit the memory that is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from hpc_train.model.expected_study import ExpectedRun, ExpectedStudy
from hpc_train.model.run_columns import RunColumns, RunFields
from hpc_train.tables.record_arrays import RecordArrays, TextCodes
from hpc_train.tables.row_codes import numbered_in_order

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
        some = msgspec.structs.replace(study, runs=_some(study.runs, own))
        chosen = fields.take(np.flatnonzero(part == number))
        names = [*fields.run.names[own], *fields.run.names[runs:]]
        codes = chosen.run.codes.astype(np.int64) - start
        # Those of runs that the study does not list come after its own.
        codes = np.where(chosen.run.codes < runs, codes, chosen.run.codes - runs + len(some.runs))
        yield some, chosen._replace(run=TextCodes(codes, names))


def _some(runs: Sequence[ExpectedRun], own: slice) -> Sequence[ExpectedRun]:
    """Return some of the runs; those of a table remain arrays, which a slice of them is not."""
    if not isinstance(runs, RunColumns):
        return runs[own]
    kind, used = numbered_in_order(np.asarray(runs.kind)[own], len(runs.kinds))
    fields = RunFields(
        runs.run_id[own], runs.repetition[own], runs.wall_s[own], runs.job_energy_j[own]
    )
    return RunColumns([runs.kinds[number] for number in used.tolist()], kind, fields)
