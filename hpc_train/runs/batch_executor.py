"""Jobs of a batch system: submitted once, found by their mark, queried, and ended."""

import datetime
import logging
import re
import time
import uuid
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

import msgspec

from hpc_train.base.errors import HpcTrainError, SubmitError
from hpc_train.base.files import owner
from hpc_train.base.values import Value
from hpc_train.runs.executor import Executor, ExecutorOptions
from hpc_train.runs.json_files import mark, status_of, write_submission
from hpc_train.runs.run import JobReport, JobState, RunFolder, RunName, SlurmEndpoint, Submission
from hpc_train.runs.run_states import nested_report

T = TypeVar("T")
# Prefix of the mark that identifies a job.
MARK = "hpctrain:"
CANCELLED = "cancelled by the user"
_PAUSES_S = (2.0, 4.0, 8.0, 16.0, 30.0)
# After these errors the request was not accepted; after any other it may be under way.
_NOT_REACHED = (
    "cannot connect to server",
    "unable to contact",
    "unable to establish",
    "connection refused",
    "no route to host",
    "unreachable",
)
_UNDER_WAY_S = 15.0
# No search begins later than this after a call, and no call later after the first one.
_SEARCH_S, _REPEAT_S = 70.0, 120.0
# Number of queries after a cancellation, one every half second: a job may be given 10 s to end.
_MAX_QUERIES = 40


class JobCall(Value, frozen=True, kw_only=True):
    """The runs of one call that submits a job.

    `elements` are the indices of an array's tasks, equal to the numbers of the repetitions; empty
    for a job that is not an array. With `shared`, one job runs them all.
    """

    runs: tuple[RunFolder, ...]
    elements: tuple[int, ...] = ()
    shared: bool = False

    def native_id(self, run: RunFolder, job: str) -> str:
        """Return the id of a run's part of the job; `job` may be empty while it is unknown."""
        name = RunName.parse(run.run_id)
        return f"{job}_{name.repetition}" if self.elements and name else job

    def record(self, request: Submission, job: str = "") -> None:
        """Write the submission.json of each run."""
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        for run in self.runs:
            native_id = self.native_id(run, job)
            write_submission(
                run, msgspec.structs.replace(request, native_id=native_id, submitted=now)
            )


class Called(NamedTuple):
    """The job that a call made; or why it is unknown, and whether the call was accepted."""

    job: str
    message: str = ""
    accepted: bool = False


class MarkedJobs(NamedTuple):
    """The mark of each job of a user and its state, with its id; or why there is no answer."""

    jobs: Sequence[tuple[str, JobReport]]
    failure: str = ""

    def with_mark(self, mark: str) -> tuple[str, ...]:
        """Return the jobs that have a mark, the oldest first; an array is one."""
        jobs = (report.job for one, report in self.jobs if one == mark)
        found = {re.sub(r"\A([0-9]+)_.*", r"\1", job) for job in jobs}
        return tuple(sorted(found, key=_number))


def _number(job: str) -> int:
    match = re.match("[0-9]+", job)
    return int(match[0]) if match else 0


def submit_each(total: int, parts: Sequence[T], submit: Callable[[T], int]) -> None:
    """Submit the parts of `total` runs, in order; `submit` returns the number of its runs.

    Raises:
        HpcTrainError: one was refused, with how many were submitted; later ones were not.
    """
    submitted = 0
    try:
        for part in parts:
            submitted += submit(part)
    except HpcTrainError as failure:
        if submitted:
            failure.message = f"{submitted} of {total} runs were submitted, then: {failure.message}"
            failure.args = (failure.message,)
            failure.hint = failure.hint or "submit again for the rest"
        raise


class BatchExecutor(Executor):
    """Submits job scripts with a command, and asks with others; keeps no state and no process."""

    # The name of the system, and its commands that submit and end jobs, and ask for its answer.
    system: ClassVar[str]
    command: ClassVar[str]
    ends: ClassVar[str]
    ping: ClassVar[str]

    def new_mark(self) -> str:
        """Return a mark that no other job has."""
        return f"{MARK}{uuid.uuid4().hex[:16]}"

    @abstractmethod
    def jobs_of(self, cluster: SlurmEndpoint, user: str) -> MarkedJobs:
        """Return the jobs of a user."""

    @abstractmethod
    def reports(
        self, cluster: SlurmEndpoint, jobs: Mapping[str, str], since: str
    ) -> dict[str, JobReport]:
        """Return the state of each job (id -> mark) submitted since a date (YYYY-MM-DD)."""

    @abstractmethod
    def end(self, cluster: SlurmEndpoint, jobs: Sequence[str]) -> None:
        """End jobs; those that have ended meanwhile are no error.

        Raises:
            SubmitError: refused.
        """

    @abstractmethod
    def has_left(self, report: JobReport) -> bool:
        """Whether a job has ended or is ending; False if its state is unknown."""

    def submit_once(
        self,
        call: JobCall,
        options: ExecutorOptions,
        mark: str,
        command: tuple[str, ...],
        send: Callable[[], Called],
    ) -> int:
        """Record the request, send it, and record the answer; it is repeated, but never made twice.

        If the process is killed before the answer, the job is found by its mark. `send` calls the
        command, and raises SubmitError if it is refused. Return the number of runs.

        Raises:
            SubmitError: refused; `transient` if it is unknown whether the job was accepted.
        """
        request = Submission(
            executor=self.system.lower(),
            native_id="",
            submitted="",
            cluster=options.cluster,
            comment=mark,
            command=command,
            shared=call.shared,
        )
        try:
            call.record(request, self._job_id(call, request, send))
        except SubmitError as failure:
            if not failure.transient:
                for run in call.runs:
                    run.submission.unlink(missing_ok=True)
            raise
        return len(call.runs)

    def _job_id(self, call: JobCall, request: Submission, send: Callable[[], Called]) -> str:
        begun, reached = time.monotonic(), False
        for pause_s in (*_PAUSES_S, None):
            # Immediately before: after a kill in between, the state is unknown for two minutes.
            call.record(request)
            done = send()
            if done.job:
                return done.job
            reached = reached or not _is_not_reached(done.message)
            if pause_s is None or time.monotonic() - begun > _REPEAT_S:
                break
            if not _is_not_reached(done.message):
                pause_s = max(pause_s, _UNDER_WAY_S)
            text = "%s does not answer (%s); in %.0f s its queue says whether it has the job"
            logging.getLogger(__name__).warning(text, self.system, done.message, pause_s)
            found = self._find(call, request, pause_s)
            if found:
                return found[0]
            if found is None or done.accepted:
                break
        if not reached:
            message = f"{self.system} cannot be reached, and has no job of this: {done.message}"
            raise SubmitError(message, f"{self.ping} answers when it does; submit again then")
        home = call.runs[0].path.parent.name
        raise SubmitError(
            f"{self.command} was not answered: {done.message}",
            f"hpctrain status {home}   says whether {self.system} has it\n"
            f"hpctrain retry {home}   submits it if {self.system} never received it",
            transient=True,
        )

    def _find(self, call: JobCall, request: Submission, pause_s: float) -> tuple[str, ...] | None:
        """Wait, then search for the job; None if the system does not respond."""
        deadline = time.monotonic() + _SEARCH_S
        for wait_s in (pause_s, *_PAUSES_S):
            if time.monotonic() + wait_s > deadline:
                break
            time.sleep(wait_s)
            found = self.jobs_of(request.cluster, owner(call.runs[0].path))
            if not found.failure:
                jobs = found.with_mark(request.comment)
                if len(jobs) > 1:
                    # The request was accepted late, and repeated: end all but one.
                    self.end(request.cluster, jobs[1:])
                return jobs
        return None

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """Query each cluster once; see `Executor.query`."""
        found: dict[RunFolder, JobReport] = {}
        for cluster, own in _by_cluster(runs).items():
            found.update(self.search(cluster, {r: s for r, s in own.items() if not s.answered}))
            known = {run: one for run, one in own.items() if one.answered}
            if known:
                since = min(submission.submitted for submission in known.values())[:10]
                comments = {one.native_id: one.comment for one in known.values()}
                jobs = self.reports(cluster, comments, since)
                found.update({run: jobs[one.native_id] for run, one in known.items()})
        for run, report in list(found.items()):
            if runs[run].reason == CANCELLED and report.state in (JobState.FAILED, JobState.LOST):
                job = report.job or runs[run].native_id
                found[run] = JobReport(state=JobState.CANCELLED, reason=CANCELLED, job=job)
            if runs[run].shared:
                nested = nested_report(status_of(run), run.cut_off.exists(), report)
                if nested is None:
                    del found[run]
                else:
                    found[run] = nested
        return found

    def search(
        self, cluster: SlurmEndpoint, runs: Mapping[RunFolder, Submission]
    ) -> dict[RunFolder, JobReport]:
        """Return the states of runs without a job id; `job` has the id if it was found."""
        found: dict[RunFolder, JobReport] = {}
        answers: dict[str, MarkedJobs] = {}
        for run, submission in runs.items():
            user = owner(run.path)
            answer = answers[user] = answers.get(user) or self.jobs_of(cluster, user)
            mine = [
                report
                for comment, report in answer.jobs
                if comment == submission.comment and report.job.endswith(submission.native_id)
            ]
            status = status_of(run)
            if mine:
                # The request was accepted twice: the older job is used everywhere.
                found[run] = min(mine, key=lambda one: _number(one.job))
            elif status is not None and status.job:
                jobs = {status.job: submission.comment}
                report = self.reports(cluster, jobs, submission.submitted[:10])[status.job]
                found[run] = msgspec.structs.replace(report, job=status.job)
            elif answer.failure:
                found[run] = self.no_answer(answer.failure)
            else:
                found[run] = unknown_job(submission, self.command, self.system)
        return found

    def no_answer(self, failure: str) -> JobReport:
        """Return the state of every job if the system does not answer."""
        reason = f"{self.system} does not answer: {failure}"
        return JobReport(state=JobState.UNKNOWN, reason=reason)

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """End the jobs of each cluster, and wait until they have left; see `Executor.cancel`."""
        for run, submission in runs.items():
            if not submission.answered:
                raise SubmitError(
                    f"{run.run_id}: its job id is not known yet", "try again in a minute"
                )
        for cluster, own in _by_cluster(runs).items():
            jobs = sorted({submission.native_id for submission in own.values()})
            self.end(cluster, jobs)
            try:
                self._await_end(cluster, jobs)
            except SubmitError:
                # Whatever is said of their end later: it was asked for.
                for run, submission in own.items():
                    write_submission(run, msgspec.structs.replace(submission, reason=CANCELLED))
                raise
        for run, submission in runs.items():
            mark(run, submission, JobState.CANCELLED, CANCELLED)

    def _await_end(self, cluster: SlurmEndpoint, jobs: Collection[str]) -> None:
        """Wait until the queue shows that the jobs have ended; the command returns earlier."""
        today = datetime.date.today().isoformat()
        for _ in range(_MAX_QUERIES):
            found = self.reports(cluster, dict.fromkeys(jobs, ""), today)
            active = sorted(job for job, one in found.items() if not self.has_left(one))
            if not active:
                return
            time.sleep(0.5)
        silent = next((one.reason for one in found.values() if one.state is JobState.UNKNOWN), "")
        message = f"{self.ends}: {', '.join(active)}: {silent or 'still in the queue'}"
        raise SubmitError(message, self.forced_end(active))

    def forced_end(self, jobs: Sequence[str]) -> str:
        """Return the next command for jobs that do not end."""
        return "try again"


def _is_not_reached(message: str) -> bool:
    return any(words in message.lower() for words in _NOT_REACHED)


def _by_cluster(
    runs: Mapping[RunFolder, Submission],
) -> dict[SlurmEndpoint, dict[RunFolder, Submission]]:
    found: dict[SlurmEndpoint, dict[RunFolder, Submission]] = defaultdict(dict)
    for run, submission in runs.items():
        found[submission.cluster][run] = submission
    return found


# A command that submits may still run: it retries or waits for a slow server.
WITHIN_S = 120.0


def unknown_job(submission: Submission, command: str, system: str) -> JobReport:
    """Return the state of a run without a job: its command may still run, if its server is slow."""
    submitted = datetime.datetime.fromisoformat(submission.submitted)
    age_s = (datetime.datetime.now(datetime.timezone.utc) - submitted).total_seconds()
    if age_s < WITHIN_S:
        reason = f"{command} was called {age_s:.0f} s ago and has not printed a job id"
        reason += f"; without a job it is lost in {WITHIN_S - age_s:.0f} s"
        return JobReport(state=JobState.UNKNOWN, reason=reason)
    reason = f"{system} never received it: {command} was not answered"
    return JobReport(state=JobState.LOST, reason=reason)
