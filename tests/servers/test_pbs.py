"""What the small PBS says of jobs is what a recorded OpenPBS 23.06 says of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.servers.pbs import RunningPbs, pbs
from tests.submissions.waiting import wait_for

__all__ = ["pbs"]
RECORDED = Path(__file__).parents[1] / "pbs" / "answers"


def jobs(text: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(text)["Jobs"]
    return found


def test_attributes_have_the_names_and_types_of_recorded_ones(pbs: RunningPbs) -> None:
    answer = jobs((RECORDED / "qstat-xf-3.json").read_text())
    recorded = {name: value for one in answer.values() for name, value in one.items()}
    words = (pbs.submit("exit 1", "-j", "oe", "-k", "doe"), pbs.submit("exit 9"))

    def asked() -> dict[str, dict[str, Any]]:
        return jobs(pbs.command("qstat", "-x", "-f", "-F", "json", *words).stdout)

    wait_for(lambda: [one["job_state"] for one in asked().values()] == ["F", "F"])
    found = asked()
    for one in found.values():
        assert {name: type(value) for name, value in one.items()} == {
            name: type(recorded[name]) for name in one
        }
    assert [one["Exit_status"] for one in found.values()] == [1, 9]
