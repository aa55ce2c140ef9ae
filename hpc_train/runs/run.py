"""Run: the folder of one submission, what was submitted, its state and files."""

import re
import shlex
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from hpc_train.base.values import Value
from hpc_train.jobs.job import RESUBMIT, JobSpec, Topology
from hpc_train.jobs.study import RefusedPoint, StudySpec
from hpc_train.plans.plan import LaunchPlan


class TemplateFile(Value, frozen=True, kw_only=True):
    """A template that was used: path, sha256 of its bytes, and whether it is shipped."""

    name: str
    path: str
    shipped: bool
    digest: str


class Script(Value, frozen=True, kw_only=True):
    """A rendered job script; `digest` is the sha256, in hex, of its bytes and those of `beside`.

    `beside` are name and text of the files that it needs in the run folder. `templates` are its
    files, in the order of their use; `template_digest` changes with name or bytes of any of them.
    """

    text: str
    digest: str
    template_digest: str
    templates: tuple[TemplateFile, ...] = ()
    beside: tuple[tuple[str, str], ...] = ()

    def text_for(self, folder: Path) -> str:
        """Return a script that finds what is beside it, whatever the working folder is."""
        path = shlex.quote(f"{folder}/runtime.sh")
        own = r"(?m)^hpctrain_runtime=.*$"
        return re.sub(own, lambda _: f"hpctrain_runtime={path}", self.text)


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
    queried at most every `poll_s` seconds.
    """

    conf: str | None = None
    clusters: str | None = None
    poll_s: float = 30.0
    # In submission.json of earlier versions.
    nodes_remembered_s: float = 0.0


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
    `queried` is the time of the query, if the answer may be older than the run's files.
    """

    state: JobState
    reason: str = ""
    start: float | None = None
    nodes: str = ""
    job: str = ""
    queried: float | None = None


MANIFEST_SCHEMA = 1
# In a run's provenance: the file of the site profile that it was planned with.
PROFILE = "profile"
PROFILE_DIGEST = "profile_sha256"
# There, too: the run that it repeats, and the checkpoints from which it resumes.
RETRY_OF = "retry_of"
RESUMES_FROM = "resumes_from"
# The meaning of a newer schema is unknown, even if it looks alike.
ManifestSchema = Annotated[int, Meta(le=MANIFEST_SCHEMA)]
# In a file that a job, or another user, has written: until the year 5138; what fits into 64 bits.
Seconds = Annotated[float, Meta(ge=0, le=1e11)]
Whole = Annotated[int, Meta(ge=-(2**62), le=2**62)]
_RUN_NAME = re.compile(r"^(?P<stem>.+)-r(?P<repetition>\d+)(?:\.(?P<attempt>\d+))?")


class RunName(Value, frozen=True, kw_only=True):
    """The parts of a study's run id: `<stem>-r<repetition>`, from the second attempt on `.2`."""

    stem: str
    repetition: int
    attempt: int = 1

    @classmethod
    def parse(cls, run_id: str) -> "RunName | None":
        """Parse a run id; None if it is that of a single job."""
        match = _RUN_NAME.fullmatch(run_id)
        if match is None:
            return None
        repetition, attempt = int(match["repetition"]), int(match["attempt"] or 1)
        return cls(stem=match["stem"], repetition=repetition, attempt=attempt)

    @property
    def ending(self) -> str:
        """What follows the repetition."""
        return f".{self.attempt}" if self.attempt > 1 else ""

    def __str__(self) -> str:
        """Write the run id."""
        return f"{self.stem}-r{self.repetition}{self.ending}"


class RunFolder(Value, frozen=True, kw_only=True):
    """Paths of the files of one run."""

    path: Path

    @property
    def run_id(self) -> str:
        """Name of the folder, unique below the results of its job or study."""
        return self.path.name

    @property
    def manifest(self) -> Path:
        """Spec, plan, provenance; written once, before the run is submitted."""
        return self.path / "run.json"

    @property
    def script(self) -> Path:
        """The bytes that were submitted."""
        return self.path / "job.sbatch"

    @property
    def beside(self) -> tuple[Path, ...]:
        """The files that the script sources or starts; scripts of earlier versions have none."""
        return tuple(sorted(self.path.glob("*.sh")))

    @property
    def submission(self) -> Path:
        """State from the executor; separate from the manifest because it changes."""
        return self.path / "submission.json"

    @property
    def status(self) -> Path:
        """State from the job itself: start, end, exit code, first failure."""
        return self.path / "status.json"

    @property
    def restarts(self) -> Path:
        """The starts of a job with `lifecycle` that ended, one line each."""
        return self.path / "restarts.jsonl"

    @property
    def cut_off(self) -> Path:
        """Exists if the run ended because its shared allocation was ended."""
        return self.path / "cut_off"

    @property
    def logs(self) -> Path:
        """job.out and rank-<r>.out."""
        return self.path / "logs"

    @property
    def records(self) -> Path:
        """Measurements taken from the logs."""
        return self.path / "records.jsonl"

    @property
    def transport(self) -> Path:
        """The transport that NCCL printed in the logs."""
        return self.path / "transport.json"


class Failure(Value, frozen=True, kw_only=True):
    """The first rank that failed; `lost_peer` is whether its log says only that it lost another.

    That other rank, or its node, failed before, and could not record it.
    """

    rank: Whole | None
    host: str
    exit_code: Whole
    time: Seconds | None = None
    lost_peer: bool = False


class JobStatus(Value, frozen=True, kw_only=True):
    """status.json, written by the job; times in seconds since the epoch.

    `job` is Slurm's id, `nodes` its node list; both are empty without Slurm. `bad_nodes` are the
    nodes that failed the preflight, separated by commas.
    """

    started: Seconds
    ended: Seconds | None = None
    exit_code: Whole | None = None
    restart_count: Whole = 0
    host: str = ""
    pid: Whole = 0
    job: str = ""
    nodes: str = ""
    failure: Failure | None = None
    bad_nodes: str = ""


class JobStart(Value, frozen=True, kw_only=True):
    """A line of restarts.jsonl: one start of a job with `lifecycle`, from its first, restart 0.

    Times in seconds since the epoch. `step` is that of the last checkpoint, which was written at
    `saved`, perhaps by an earlier start; `resumed` is when ranks last had loaded one, that of step
    `loaded`, written at `loaded_saved`. A later checkpoint that the next start found `damaged` is
    not the last one. `reached` is the last step that rank 0 printed; `stalled` counts the starts in
    a row that saved no later step than they loaded, `by_slurm` is whether Slurm had ended the job,
    `requeued` whether the script queued it again. `failed` is the node whose rank failed first,
    `preempted` whether its ranks ended in the grace time of a preemption. A start that
    could not write its line has no end; the next one writes it.
    """

    restart: Whole
    started: Seconds
    ended: Seconds | None = None
    exit_code: Whole | None = None
    nodes: str = ""
    step: Whole = 0
    stalled: Whole = 0
    reached: Whole | None = None
    by_slurm: bool = False
    requeued: bool = False
    saved: Seconds | None = None
    resumed: Seconds | None = None
    failed: str = ""
    preempted: bool = False
    loaded: Whole | None = None
    loaded_saved: Seconds | None = None
    damaged: Whole | None = None

    @property
    def saved_on_request(self) -> bool:
        """Whether its ranks saved a checkpoint when the job asked them to, and ended."""
        saved = self.saved is not None and self.saved >= self.started
        return saved and self.exit_code == RESUBMIT

    @property
    def steps_lost(self) -> int | None:
        """Its steps after the last checkpoint, which the next start repeats; None if unknown."""
        if self.exit_code == 0:
            return 0
        if self.reached is None:
            return 0 if self.saved_on_request and self.damaged is None else None
        return max(0, self.reached - max(self.step, self.loaded or 0))


class Manifest(Value, frozen=True, kw_only=True):
    """run.json: the complete description of the run."""

    schema: ManifestSchema
    run_id: str
    name: str
    study: str | None
    axes: dict[str, Any]
    repetition: int
    attempt: int
    created: str
    spec: JobSpec
    plan: LaunchPlan
    script_digest: str
    template_digest: str
    provenance: dict[str, Any]


class Run(Value, frozen=True, kw_only=True):
    """One run as described by its folder; a file that is missing or cannot be read is None.

    As `read_run` reads it, `problem` names what is damaged, and the state is UNKNOWN; `run_of`
    decides both. `earlier` is the status.json of a start before the job was requeued, until it
    starts again. `starts` are those that ended of a job with `lifecycle`. `logged`: the job
    script's log exists. Of a run of a `newer` version nothing is read.
    """

    folder: RunFolder
    manifest: Manifest | None
    submission: Submission | None
    status: JobStatus | None
    state: JobState = JobState.UNKNOWN
    problem: str = ""
    job_report: JobReport | None = None
    earlier: JobStatus | None = None
    starts: tuple[JobStart, ...] = ()
    logged: bool = True
    newer: bool = False


class StudyPoint(Value, frozen=True, kw_only=True):
    """A point as it was submitted; run ids are `<stem>-r<repetition>`."""

    axes: dict[str, Any]
    topology: Topology
    stem: str


class StudyManifest(Value, frozen=True, kw_only=True):
    """study.json: all requested runs of a study, so that missing ones can be named."""

    schema: ManifestSchema
    spec: StudySpec
    baseline: dict[str, Any]
    points: tuple[StudyPoint, ...]
    refused: tuple[RefusedPoint, ...] = ()

    def requested(self) -> Iterator[tuple[str, StudyPoint, int]]:
        """Yield `<stem>-r<repetition>`, point and repetition of each requested run."""
        for point in self.points:
            for repetition in range(1, self.spec.repetitions + 1):
                yield f"{point.stem}-r{repetition}", point, repetition
