"""Faults that a test requests from the service: how often each still happens."""

from __future__ import annotations

import json
import threading
from pathlib import Path

FILE = "faults.json"
# Fault -> what happens so many times.
KNOWN = {
    "throttle_create": "CreateTrainingJob is refused, because of too many calls",
    "throttle_list": "ListTrainingJobs is refused, because of too many calls",
    "lost_answer": "CreateTrainingJob creates the job, and the connection breaks",
    "name_taken": "CreateTrainingJob is refused: the name is that of another job",
    "no_quota": "CreateTrainingJob is refused by the quota of the account",
    "no_role": "CreateTrainingJob is refused: the role cannot be assumed",
    "denied": "a call to IAM or EC2 is refused: the user lacks the permission",
    "capacity": "a job fails, because there are no instances",
    "slow_download": "a job downloads for 60 s",
    "old_token": "GetLogEvents refuses a token",
    "empty_page": "GetLogEvents returns an empty page before the end",
    "interrupt": "spare capacity is taken away 2 s after the containers have started",
}


class Faults:
    """The counts of a file, which a test writes at any time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._lock = threading.Lock()

    def take(self, name: str) -> bool:
        """Return whether a fault happens now, and count it."""
        with self._lock:
            try:
                counts = json.loads(self._file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return False
            left = counts.get(name, 0)
            if left > 0:
                self._file.write_text(json.dumps({**counts, name: left - 1}), encoding="utf-8")
            return bool(left > 0)
