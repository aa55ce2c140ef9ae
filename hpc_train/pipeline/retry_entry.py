"""A run to retry -> the manifest and the script of its next attempt."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import datetime, timezone

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.run import RESUMES_FROM, RETRY_OF, Manifest, Run, RunName
from hpc_train.model.submission import Script
from hpc_train.model.value import Value
from hpc_train.pipeline.changed_job import changed_job
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.submit import profile_facts, single_run_id
from hpc_train.pipeline.submit_runs import Entry
from hpc_train.regularfile import read_regular
from hpc_train.runs.job_starts import CHECKPOINTS


class RetryTarget(Value, frozen=True, kw_only=True):
    """A run to retry; `model` is its last attempt, or another run of its point if that was removed.

    `repeats` is the run id of the previous attempt. If `ready`, the model itself is submitted and
    no folder is created: a command that created its folder was killed before the submission.
    """

    model: Run
    repetition: int
    attempt: int
    repeats: str = ""
    ready: bool = False


def manifest_of(run: Run) -> Manifest:
    """Return the manifest of a run.

    Raises:
        StoreError: it is damaged.
    """
    if run.manifest is None:
        raise StoreError(
            f"{run.folder.path}: {run.problem}", "remove the folder, then submit the study again"
        )
    return run.manifest


def retry_entry(
    target: RetryTarget,
    facts: dict[str, object],
    settings: Sequence[str],
    say: Callable[[str], None],
) -> Entry:
    """Return the next attempt of a run: unchanged or, with `settings`, planned again.

    Raises:
        StoreError: a file of the run is damaged, or it cannot be changed because it is of a study.
        HpcTrainError: the changed job is wrong, or does not fit the site.
    """
    old = manifest_of(target.model)
    if settings:
        return _changed(target, facts, changed_job(target.model.folder, old, settings), say)
    if target.ready:
        return old, _script(target.model, old)
    facts = {**facts, **_resumed(target.model), RETRY_OF: target.repeats}
    now = datetime.now(timezone.utc)
    name = RunName.parse(old.run_id)
    run_id = (
        str(RunName(stem=name.stem, repetition=target.repetition, attempt=target.attempt))
        if name
        else single_run_id(now, old.run_id.rpartition("-")[2])
    )
    manifest = msgspec.structs.replace(
        old,
        run_id=run_id,
        repetition=target.repetition,
        attempt=target.attempt,
        created=now.isoformat(timespec="seconds"),
        provenance={**old.provenance, **facts},
    )
    _say_of_checkpoints(target.model, manifest, say)
    return manifest, _script(target.model, old)


def _resumed(old: Run) -> dict[str, object]:
    """Return where a scheduler keeps the checkpoints of a run; one of a study is measured anew."""
    kept = old.submission.checkpoints if old.submission else ""
    return {RESUMES_FROM: kept} if kept and manifest_of(old).study is None else {}


def _say_of_checkpoints(old: Run, new: Manifest, say: Callable[[str], None]) -> None:
    """Say which checkpoints a new run has, unless the job names their folder."""
    if CHECKPOINTS in dict(new.plan.env):
        return
    if kept := new.provenance.get(RESUMES_FROM):
        say(f"{new.run_id} resumes from {kept}; hpctrain submit starts a job anew")
        return
    step = old.starts[-1].step if old.starts else 0
    if not step:
        return
    say(f"{new.run_id} begins at step 0: {old.folder.run_id} has a checkpoint of step {step}")
    if new.study is None:
        setting = shlex.quote(f"env.{CHECKPOINTS}={old.folder.path.absolute()}/checkpoints")
        say(f"  to go on from it: hpctrain cancel {new.run_id}, then")
        say(f"  hpctrain retry {new.run_id} --set {setting}")


def _changed(
    target: RetryTarget,
    facts: dict[str, object],
    prepared: Prepared,
    say: Callable[[str], None],
) -> Entry:
    for warning in prepared.warnings:
        say(f"warning: {warning}")
    (point,) = prepared.points
    old, now = manifest_of(target.model), datetime.now(timezone.utc)
    manifest = msgspec.structs.replace(
        old,
        run_id=single_run_id(now, point.stem),
        attempt=target.attempt,
        created=now.isoformat(timespec="seconds"),
        spec=point.job.value,
        plan=point.plan,
        script_digest=point.script.digest,
        template_digest=point.script.template_digest,
        provenance={
            **old.provenance,
            **facts,
            **profile_facts(point.place.profile),
            **_resumed(target.model),
            RETRY_OF: target.repeats,
        },
    )
    _say_of_checkpoints(target.model, manifest, say)
    return manifest, point.script


def _script(run: Run, manifest: Manifest) -> Script:
    try:
        text = read_regular(run.folder.script).decode()
    except OSError as failure:
        raise StoreError(f"{run.folder.script}: {failure.strerror or failure}") from None
    except UnicodeDecodeError:
        raise StoreError(f"{run.folder.script}: damaged: not UTF-8 text") from None
    return Script(
        text=text, digest=manifest.script_digest, template_digest=manifest.template_digest
    )
