"""Submission, JobState, Standing: what was handed over, to whom, and how it stands."""

from __future__ import annotations

from enum import Enum

from hpc_train.model.value import Value


class JobState(str, Enum):
    """Slurm's words where Slurm has one; UNKNOWN is a state, and is not finished."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    PREEMPTED = "PREEMPTED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    LOST = "LOST"
    UNKNOWN = "UNKNOWN"

    @property
    def finished(self) -> bool:
        """Whether the run will not change any more by itself."""
        return self not in _UNFINISHED

    @property
    def active(self) -> bool:
        """Whether the run waits, runs or is suspended."""
        return self in _ACTIVE


_ACTIVE = frozenset({JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED})
_UNFINISHED = _ACTIVE | {JobState.UNKNOWN}


class Cluster(Value, frozen=True, kw_only=True):
    """How a cluster is reached, for whoever asks after a run later.

    `conf` is the slurm.conf that its commands need, if they do not find it themselves; `clusters`
    are those of a multi-cluster site that its jobs may be on, `` the default one, None whatever
    the shell says. It is asked at most every `poll_s` seconds.
    """

    conf: str | None = None
    clusters: str | None = None
    poll_s: float = 30.0


class Submission(Value, frozen=True, kw_only=True):
    """What an executor was given; `state` is set when the end is known for good.

    It is written before the scheduler is asked, and again with its answer: a `native_id` without a
    number, `` or `_3` for an array's third element, means that no answer came. The scheduler has
    `comment` too, by which such a job is found again. With `shared`, several runs have one
    allocation and take turns in it.
    """

    executor: str
    native_id: str
    submitted: str
    cluster: Cluster = Cluster()
    comment: str = ""
    command: tuple[str, ...] = ()
    shared: bool = False
    state: JobState | None = None
    reason: str = ""

    @property
    def answered(self) -> bool:
        """Whether the scheduler said which job this is."""
        return not (self.native_id == "" or self.native_id.startswith("_"))


class Standing(Value, frozen=True, kw_only=True):
    """How a run stands by its executor's word.

    `reason` is a sentence; `start`, in seconds since the epoch, is when it started or, while it is
    pending, is expected to; `nodes` is the scheduler's node list and `job` its id of the job.
    `asked` is when, where an answer may be older than the run's own files.
    """

    state: JobState
    reason: str = ""
    start: float | None = None
    nodes: str = ""
    job: str = ""
    asked: float | None = None
