"""Faults of the small PBS, for tests: files in the folder `faults` of its state.

| name | effect |
|---|---|
| lost-answer | the next qsub is accepted, and its answer is lost |
| refused-once | the next qsub does not reach the server |
| silent | no command is answered, until the fault is removed |
| broken-json | the JSON of qstat has a variable with a quote |
| only-first | the JSON of qstat has only the first of several jobs |
| no-history | qstat -x is refused |
| history-gone | jobs that have ended are unknown |
"""

from __future__ import annotations

from pathlib import Path


class Faults:
    """The faults of a server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "faults"

    def has(self, name: str) -> bool:
        """Whether a fault is set."""
        return (self._folder / name).exists()

    def take(self, name: str) -> bool:
        """Whether a fault was set that happens once; it is removed."""
        found = self.has(name)
        (self._folder / name).unlink(missing_ok=True)
        return found
