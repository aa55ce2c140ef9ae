"""What every executor is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import Submission


class Executor(Protocol):
    """Hands scripts to something that runs them; keeps no state of its own."""

    def submit(self, home: Path, runs: Sequence[RunFolder]) -> None:
        """Hand over runs, in order, and write each one's submission.json.

        Raises:
            SubmitError: refused; nothing is running.
        """

    def alive(self, home: Path, submissions: Mapping[str, Submission]) -> Mapping[str, bool | None]:
        """Say for each run whether the executor still has it; one query for all of them."""

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """End runs, queued or running, and record that they were cancelled."""
