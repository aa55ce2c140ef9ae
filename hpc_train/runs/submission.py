"""What is submitted (a script, for one run or a shared allocation), and its state."""

from enum import Enum
from typing import Annotated

from msgspec import Meta

from hpc_train.base.value import Value


class TemplateFile(Value, frozen=True, kw_only=True):
    """A template that was used: path, sha256 of its bytes, and whether it is shipped."""

    name: str
    path: str
    shipped: bool
    digest: str


class Script(Value, frozen=True, kw_only=True):
    """A rendered job script; `digest` is the sha256 of its UTF-8 bytes, in hex.

    `templates` are its files, in the order of their use; `template_digest` changes with the name or
    the bytes of any of them.
    """

    text: str
    digest: str
    template_digest: str
    templates: tuple[TemplateFile, ...] = ()


class JobState(str, Enum):
    """States of a run, with Slurm's names where possible; UNKNOWN is not final."""

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
        """Whether the state is final."""
        return self not in _UNFINISHED

    @property
    def active(self) -> bool:
        """Whether the run waits, runs or is suspended."""
        return self in _ACTIVE


_ACTIVE = frozenset({JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED})
_UNFINISHED = _ACTIVE | {JobState.UNKNOWN}


class SlurmEndpoint(Value, frozen=True, kw_only=True):
    """How to reach the cluster of a run in later queries.

    `conf` is the slurm.conf that its commands need, if they do not find it themselves; `clusters`
    are those of a multi-cluster site, `` means the default one, None that of the shell. It is
    queried at most every `poll_s` seconds; a failure says something of a node for
    `nodes_remembered_s` seconds.
    """

    conf: str | None = None
    clusters: str | None = None
    poll_s: float = 30.0
    # A node is repaired or replaced; what failed on it before says nothing then.
    nodes_remembered_s: float = 7 * 86400.0


class Submission(Value, frozen=True, kw_only=True):
    """The request to an executor; `state` is set when it is final.

    It is written before the scheduler is called, and again with its answer: a `native_id` without a
    number, `` or `_3` for an array's third element, means that there was no answer. The job has
    `comment` as well, which identifies it in that case. With `shared`, several runs share one
    allocation, one after the other. `checkpoints` is where they are kept, if the scheduler does it.
    """

    executor: str
    # An argument of the scheduler's commands.
    native_id: Annotated[str, Meta(pattern=r"^(?!-)[^\x00-\x20]*$")]
    submitted: str
    cluster: SlurmEndpoint = SlurmEndpoint()
    comment: str = ""
    command: tuple[str, ...] = ()
    shared: bool = False
    checkpoints: str = ""
    state: JobState | None = None
    reason: str = ""

    @property
    def answered(self) -> bool:
        """Whether the job id is known."""
        return not (self.native_id == "" or self.native_id.startswith("_"))


class JobReport(Value, frozen=True, kw_only=True):
    """State of a run according to its executor.

    `reason` is a sentence; `start`, in seconds since the epoch, is when it started or, while it is
    pending, is expected to; `nodes` is the scheduler's node list and `job` its id of the job.
    `queried` is the time of the query, if the answer may be older than the run's files. With
    `history`, the reason says what ended the previous attempt of a requeued job.
    """

    state: JobState
    reason: str = ""
    start: float | None = None
    nodes: str = ""
    job: str = ""
    queried: float | None = None
    history: bool = False
