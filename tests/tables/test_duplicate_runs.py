"""Two logs with the same measurements in each line are one job under two names."""

from __future__ import annotations

from typing import Any

import pytest

from hpc_train.errors import ReportError
from hpc_train.tables.duplicate_runs import LEAST, marks_of, refuse_copies
from hpc_train.tables.record_arrays import record_arrays
from tests.tables.studies import foreign, record


def marks(count: int = LEAST, **changed: Any) -> dict[str, int]:
    """Return the marks of a log and of another one with changed values."""
    given = {"metric": "step_time", "value": 0.5, "scope": "global", "rank": 0, "variant": ""}
    records = [
        record(run, **{**given, **more}, line=line, step=line)
        for run, more in (("a", {}), ("b", changed))
        for line in range(1, count + 1)
    ]
    return marks_of(record_arrays(records), [foreign("a"), foreign("b")])


def test_a_copy_is_refused() -> None:
    with pytest.raises(ReportError, match="a and b hold the same measurements, line by line"):
        refuse_copies(marks())


@pytest.mark.parametrize(
    "changed", [{"value": 0.25}, {"rank": 1}, {"metric": "epoch_time"}, {"variant": "mean"}]
)
def test_logs_that_differ_are_two_jobs(changed: dict[str, Any]) -> None:
    found = marks(**changed)
    assert len(found) == 2
    refuse_copies(found)


def test_few_measurements_may_be_equal_by_chance() -> None:
    assert marks(LEAST - 1) == {}
