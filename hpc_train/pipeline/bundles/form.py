"""What a bundle is made of: its names, its list of members, and what was found out before."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.submission import JobState, Standing
from hpc_train.model.transport import Transport
from hpc_train.model.value import Value

ENDING = ".tar.zst"
SCHEMA = 1
MANIFEST = "MANIFEST.json"
EVIDENCE = "evidence.json"
RECORDS = "records.jsonl"
# The same whatever else is written beside the bundle.
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


class Judged(Value, frozen=True, kw_only=True):
    """How a run stood when it was packed: what only its cluster could say."""

    run_id: str
    state: JobState
    problem: str = ""
    standing: Standing | None = None


class Kept(Value, frozen=True, kw_only=True):
    """evidence.json: what was asked for and found, so that nothing must be found out again.

    `study` has the gates and the price of its site, too. `transports` are those of runs that have
    no folder, `logs` lines about the files of anybody, `against` rows of the runs of what the study
    must not be slower than.
    """

    study: ExpectedStudy
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    runs: tuple[Judged, ...] = ()
    transports: Mapping[str, Transport] = MappingProxyType({})
    logs: tuple[str, ...] = ()
    against: tuple[dict[str, Any], ...] = ()
