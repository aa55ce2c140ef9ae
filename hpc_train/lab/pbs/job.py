"""PbsJob: a job, a job array or a subjob of the small PBS."""

from __future__ import annotations

from dataclasses import dataclass, field

from hpc_train.lab.pbs.qsub_request import JobRequest
from hpc_train.lab.pbs.resource_list import Chunk

SERVER = "pbs"
# What PBS replaces by the index of a subjob in the paths of -o and -e.
_INDEX = "^array_index^"


@dataclass
class PbsJob:
    """A job: what was requested, where it is, and how it ended.

    `placed` are its chunks with the numbers of their nodes. Times are in seconds since the epoch.
    A job array has its subjobs in `members`; each of them has an `index` and its `array`.
    """

    number: int
    request: JobRequest
    created: float
    state: str = "Q"
    substate: int = 10
    comment: str = ""
    placed: list[tuple[int, Chunk]] = field(default_factory=list)
    started: float | None = None
    ended: float | None = None
    exit_status: int | None = None
    # The exit status of a job that is being ended, and when its processes are killed.
    verdict: int | None = None
    kill_at: float | None = None
    members: list[PbsJob] = field(default_factory=list)
    index: int | None = None
    array: PbsJob | None = field(default=None, repr=False, compare=False)

    @property
    def whole(self) -> PbsJob:
        """Return the array of a subjob; any other job itself."""
        return self.array or self

    @property
    def id(self) -> str:
        """Return the id, as qsub prints it: `41.pbs`, an array `41[].pbs`, a subjob `41[3].pbs`."""
        part = "[]" if self.members else "" if self.index is None else f"[{self.index}]"
        return f"{self.number}{part}.{SERVER}"

    @property
    def ended_state(self) -> str:
        """Return the letter of its state once it has ended: a subjob expires."""
        return "F" if self.index is None else "X"

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state in "FX"

    @property
    def output(self) -> str:
        """Return the file of its output."""
        return self._file(self.request.output, "o")

    @property
    def errors(self) -> str:
        """Return the file of its errors, unless they are in its output."""
        return self._file(self.request.errors, "e")

    def _file(self, stated: str, letter: str) -> str:
        folder = self.request.variables.get("PBS_O_WORKDIR", "/")
        default = f"{folder}/{self.request.name}.{letter}{self.number}"
        path = stated or (f"{default}.{_INDEX}" if self.request.array else default)
        return path if self.index is None else path.replace(_INDEX, str(self.index))


def node_name(number: int) -> str:
    """Return the name of a node, counted from 0."""
    return f"pbs{number + 1}"
