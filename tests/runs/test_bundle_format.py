"""The files of bundles keep the names of their keys, so that older bundles are read."""

from __future__ import annotations

import msgspec

from hpc_train.model.submission import JobReport, JobState
from hpc_train.runs.bundle_format import StoredState


def test_the_keys_of_a_stored_state() -> None:
    report = JobReport(state=JobState.LOST, queried=5.0)
    stored = StoredState(run_id="a-r1", state=JobState.LOST, job_report=report)
    found = msgspec.json.decode(msgspec.json.encode(stored))
    assert set(found) >= {"run_id", "state", "standing"}
    assert found["standing"]["asked"] == 5.0
    assert msgspec.json.decode(msgspec.json.encode(stored), type=StoredState) == stored
