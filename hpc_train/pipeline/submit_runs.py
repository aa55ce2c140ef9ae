"""Manifests and scripts -> run folders -> an executor."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from hpc_train.data_folders import template_path
from hpc_train.errors import HpcTrainError
from hpc_train.json_files import write_file
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import PROFILE, Manifest, Run, RunFolder
from hpc_train.model.site import SiteProfile
from hpc_train.model.study import StudyManifest
from hpc_train.model.submission import Script, SlurmEndpoint
from hpc_train.model.value import Sourced, Value
from hpc_train.pipeline.run_states import executor_of
from hpc_train.plans.shared_allocation import allocate
from hpc_train.regularfile import is_regular, is_there, read_regular
from hpc_train.runs.run_folders import STUDY_FILE, create_runs, remove_runs, write_study
from hpc_train.scripts.render import render_allocation
from hpc_train.submissions.base import ExecutorOptions

Entry = tuple[Manifest, Script]


class Submitted(Value, frozen=True, kw_only=True):
    """Result of a submission: the new runs, and the existing ones."""

    home: Path
    new: tuple[RunFolder, ...]
    kept: tuple[Run, ...] = ()


def executor_options(site: Sourced[SiteProfile], entries: Sequence[Entry]) -> ExecutorOptions:
    """Return the options of a submission at a site; nested runs get the script of their allocation.

    Raises:
        PlanError: the runs do not fit into one allocation.
    """
    profile = site.value
    plan = entries[0][0].plan if entries else None
    options = ExecutorOptions(
        cluster=cluster_of(profile, plan),
        limits=profile.limits,
        comment=plan.comment if plan else "",
        site=site,
    )
    if not any(manifest.plan.nested for manifest, _ in entries):
        return options
    runs = [(manifest.run_id, manifest.plan) for manifest, _ in entries]
    shared = allocate(site, runs, entries[0][0].name)
    file = Path(str(entries[0][0].provenance.get(PROFILE, "")))
    script = render_allocation(shared, template_path(file))
    return msgspec.structs.replace(options, allocation=script)


def cluster_of(profile: SiteProfile, plan: LaunchPlan | None = None) -> SlurmEndpoint:
    """Return how a site's scheduler is reached from this shell, and its two times.

    The shell's SLURM_CONF takes precedence over the profile's; --clusters of a plan over the
    shell's.
    """
    shell = os.environ.get("SLURM_CLUSTERS") or os.environ.get("SBATCH_CLUSTERS") or ""
    clusters = dict(plan.directives).get("clusters") if plan else None
    conf = os.environ.get("SLURM_CONF") or profile.slurm_conf
    reached = SlurmEndpoint(conf=conf, clusters=clusters or shell)
    if profile.poll is not None:
        reached = msgspec.structs.replace(reached, poll_s=float(profile.poll))
    forgotten = profile.lifecycle.forget_nodes_after if profile.lifecycle else None
    if forgotten is not None:
        reached = msgspec.structs.replace(reached, nodes_remembered_s=float(forgotten))
    return reached


def submit_runs(
    home: Path,
    entries: Sequence[Entry],
    options: ExecutorOptions,
    study: StudyManifest | None = None,
    ready: Collection[RunFolder] = (),
) -> tuple[RunFolder, ...]:
    """Create the runs' folders, write study.json, and submit the runs, in order.

    The folders of `ready` runs exist: the command that created them was killed.

    Raises:
        HpcTrainError: folders of runs that were not submitted are removed, unless they were ready.
    """
    created = create_runs(home, entries)
    folders = [RunFolder(path=home / manifest.run_id) for manifest, _ in entries]
    new = tuple(folder for folder in folders if folder in created or folder in ready)
    file = home / STUDY_FILE
    before = read_regular(file) if is_regular(file) else None
    try:
        if study is not None:
            write_study(home, study)
        if not new:
            return ()
        executor_of(entries[0][0].plan.scheduler).submit(home, new, options)
    except HpcTrainError:
        left = [run for run in new if not is_there(run.submission)]
        remove_runs([run for run in left if run in created])
        if len(left) == len(new):
            _restore(file, before)
        raise
    return new


def _restore(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink(missing_ok=True)
    elif content != read_regular(file):
        write_file(file, content)
