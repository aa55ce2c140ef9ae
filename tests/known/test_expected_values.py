"""Every value that is expected of every real log is what the product states."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from tests.known import benchmarks, failures, training
from tests.known.folder import Row, rows
from tests.known.stated import stated
from tests.known.training import Check

CHECKS: Mapping[str, Check] = {
    **training.CHECKS,
    **failures.CHECKS,
    **benchmarks.MLPERF,
    **benchmarks.NCCL,
    **benchmarks.BANDWIDTH,
}
# What no log says, and why it cannot be checked against one.
UNCHECKED = {
    "published": "a sentence of a paper",
    "published_in": "where a number was published",
    "published_min": "rounded in the publication; set_olympic_mean_min has the digits",
    "published_step_ms": "rounded in the publication; mean_step_ms_excl_first has the digits",
    "published_step_s": "rounded in the publication; the step times have the digits",
    "excerpt_retyped": "how the file came about",
    "note": "a sentence on the format; other keys hold its numbers",
    "nodes": "of the job's request; no line says it",
    "set": "the folder's name",
    "title": "the benchmark's heading, which is no number",
    "weak_scaling_efficiency_vs_n1": "needs a second log, which is not there",
    "speedup": "of several logs; test_tables.py has it",
    "efficiency": "of several logs; test_tables.py has it",
    **dict.fromkeys(
        ("connected_all_rings", "init_complete", "pxn_channels", "warn_count"),
        "lines of NCCL that no verdict needs",
    ),
}
# What another program printed into the same log.
PARTS = ("mlperf", "nccl")


class Expected(NamedTuple):
    """One value that is expected of one log."""

    row: Row
    key: str
    value: Any


def _of(row: Row, values: Mapping[str, Any]) -> Iterator[Expected]:
    for key, value in values.items():
        if key in PARTS:
            yield from _of(row, value)
        elif key not in UNCHECKED:
            yield Expected(row, key, value)


EXPECTED = [one for row in rows() for one in _of(row, row.expected)]


@pytest.mark.parametrize("one", EXPECTED, ids=lambda one: f"{one.row.file}-{one.key}")
def test_expected_value_is_stated(one: Expected) -> None:
    assert one.key in CHECKS, f"no check for this key of the manifest: {one}"
    CHECKS[one.key](stated(one.row.path, one.row.form), one.value)


def test_no_key_is_both_checked_and_not() -> None:
    assert not set(CHECKS) & set(UNCHECKED)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.file)
def test_work_that_was_done_has_no_fatal_finding(row: Row) -> None:
    found = stated(row.path, row.form).diagnosed.diagnosis
    expected_to_fail = row.expected.get("severity") == "fatal"
    fatal = [one.id for one in found.findings if one.severity == "fatal"]
    assert bool(fatal) == expected_to_fail
    assert (found.outcome == "failed") == expected_to_fail
