"""Layout of a bundle: names, manifest, and stored results."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.submission import JobReport, JobState
from hpc_train.model.transport import Transport
from hpc_train.model.value import Value

ENDING = ".tar.zst"
SCHEMA = 1
MANIFEST = "MANIFEST.json"
EVIDENCE = "evidence.json"
RECORDS = "records.jsonl"
# Independent of other outputs of the same command.
PICTURES = ("svg", "png")


class Member(Value, frozen=True, kw_only=True):
    """One file of a bundle: its size in bytes and its SHA-256."""

    size: int
    sha256: str


class Contents(Value, frozen=True, kw_only=True):
    """MANIFEST.json: every other member, and which hpctrain packed them."""

    schema: int
    hpctrain: str
    name: str
    members: dict[str, Member]
    notes: tuple[str, ...] = ()


class StoredState(Value, frozen=True, kw_only=True):
    """State of a run at the time of packing, which only its cluster knows."""

    run_id: str
    state: JobState
    problem: str = ""
    # The name in the files of bundles.
    job_report: JobReport | None = msgspec.field(default=None, name="standing")


class StoredResults(Value, frozen=True, kw_only=True):
    """evidence.json: requested runs and stored results, so that nothing is queried again.

    `study` includes the gates and the price of its site. `transports` are those of runs without a
    folder, `logs` lines about foreign files, `against` rows of the runs of the regression gate's
    reference, `against_implausible` lines on its implausible values.
    """

    study: ExpectedStudy
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    runs: tuple[StoredState, ...] = ()
    transports: Mapping[str, Transport] = MappingProxyType({})
    logs: tuple[str, ...] = ()
    against: tuple[dict[str, Any], ...] = ()
    against_implausible: tuple[str, ...] = ()
