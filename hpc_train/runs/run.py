"""Run: the folder of one submission, and the contents of its files."""

import re
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from hpc_train.base.value import Value
from hpc_train.jobs.job import RESUBMIT, JobSpec, Topology
from hpc_train.jobs.study import RefusedPoint, StudySpec
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.submission import JobReport, JobState, Submission

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

    @property
    def index(self) -> Path:
        """The index of the logs at the last reading."""
        return self.path / "logs.index"


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
    """One run as described by its folder; `manifest` is None if it cannot be read.

    `earlier` is the status.json of a start before the job was requeued, until it starts again.
    `starts` are those that ended of a job with `lifecycle`. A run of a `newer` version has no other
    values than its folder and problem.
    """

    folder: RunFolder
    manifest: Manifest | None
    submission: Submission | None
    status: JobStatus | None
    state: JobState
    problem: str = ""
    job_report: JobReport | None = None
    earlier: JobStatus | None = None
    starts: tuple[JobStart, ...] = ()
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
