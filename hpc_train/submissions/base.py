"""What every executor is, and the terms on which it is given runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hpc_train.model.run import RunFolder
from hpc_train.model.script import Script
from hpc_train.model.site import Limits
from hpc_train.model.submission import Cluster, Standing, Submission
from hpc_train.model.value import Value


class Terms(Value, frozen=True, kw_only=True):
    """How runs are handed over: where to, within which limits, not on which nodes.

    `comment` is the user's, for all of them. With an `allocation`, its script is submitted and
    runs them all, one after the other.
    """

    cluster: Cluster = Cluster()
    limits: Limits = Limits()
    exclude: tuple[str, ...] = ()
    comment: str = ""
    allocation: Script | None = None


class Executor(Protocol):
    """Hands scripts to something that runs them; keeps no state of its own."""

    def submit(self, home: Path, runs: Sequence[RunFolder], terms: Terms) -> None:
        """Hand over runs, in order, and write each one's submission.json.

        Raises:
            SubmitError: refused. A run without submission.json was not handed over.
        """

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, Standing]:
        """Say how runs stand, of any jobs and studies, with one question for all of them.

        A run that is left out has ended, and its own files say how.
        """

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """End runs, queued or running, and record that they were cancelled.

        Raises:
            SubmitError: they cannot be ended.
        """
