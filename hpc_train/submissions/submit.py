"""Prepared jobs -> checks -> run folders -> an executor; only what is missing is submitted."""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from math import sqrt
from pathlib import Path

import msgspec

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import HpcTrainError, SpecError, SubmitError, nearest
from hpc_train.base.files import is_regular, is_there, read_regular, sha256_of
from hpc_train.base.values import Value
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.plans.lifecycle import CHECKPOINTS
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import allocate, check_budget, cost_of
from hpc_train.runs.conditions import provenance
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.expected_runs import latest_attempts
from hpc_train.runs.json_files import check_version, exclusive, write_file
from hpc_train.runs.run import (
    MANIFEST_SCHEMA,
    PROFILE,
    PROFILE_DIGEST,
    JobState,
    Manifest,
    Run,
    RunFolder,
    RunName,
    Script,
    SlurmEndpoint,
    StudyManifest,
    StudyPoint,
)
from hpc_train.runs.run_folders import (
    STUDY_FILE,
    create_runs,
    remove_home,
    remove_runs,
    write_study,
)
from hpc_train.runs.run_states import executor_of, is_untouched, never_submitted, runs_below
from hpc_train.scripts.prepare import Prepared, PreparedPoint, randomised_blocks
from hpc_train.scripts.render import render_allocation
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.profile import SiteProfile, SourcedSite

# States without a result that are not failures of the job; a study reruns them.
_GONE = (JobState.LOST, JobState.CANCELLED, JobState.NODE_FAIL, JobState.PREEMPTED)
_FAILED = (JobState.FAILED, JobState.TIMEOUT, JobState.OUT_OF_MEMORY)

Entry = tuple[Manifest, Script]


class Submitted(Value, frozen=True, kw_only=True):
    """Result of a submission: the new runs, and the existing ones."""

    home: Path
    new: tuple[RunFolder, ...]
    kept: tuple[Run, ...] = ()


def no_output(text: str) -> None:
    """Ignore a message."""


def submit(
    prepared: Prepared,
    root: Path,
    argv: Sequence[str],
    say: Callable[[str], None] = no_output,
    *,
    rerun_failed: bool = False,
    max_gpu_hours: float | None = None,
) -> Submitted:
    """Submit a job, or the missing runs of a study; `say` receives the notices and the cost before.

    A run is missing if it was never started, was lost, cancelled or ended by the scheduler. Failed
    ones have a result and are kept, unless they are to run again.

    Raises:
        HpcTrainError: folders of runs that were not submitted are removed.
    """
    check_start(prepared)
    home = root / prepared.name
    check_version(home / STUDY_FILE)
    made_root = not root.exists()
    try:
        with exclusive(home / ".submit.lock", say):
            latest = latest_attempts(runs_below(home)) if prepared.study else {}
            kept, entries = _split(prepared, latest, rerun_failed, provenance(Path(), argv))
            options = ready_options(home, entries, options_of(prepared.site.site, entries))
            notices = submission_notices([(entries, options)], max_gpu_hours)
            others = _at_other_sites(prepared, latest)
            if entries:
                for text in (*others, *notices, *preview(prepared)):
                    say(text)
            study = study_manifest(prepared) if prepared.study is not None else None
            new = submit_entries(home, entries, options, study=study)
    except HpcTrainError:
        remove_home(home)
        if made_root:
            with suppress(OSError):
                root.rmdir()
        raise
    return Submitted(home=home, new=new, kept=kept)


def _split(
    prepared: Prepared,
    latest: Mapping[str, Run],
    rerun_failed: bool,
    facts: dict[str, object],
) -> tuple[tuple[Run, ...], list[Entry]]:
    """Return the runs to keep, and those to submit, one repetition after the other.

    With consecutive repetitions of one point, a drift of the machine would look like scaling. A run
    of unknown state is not missing, so that it never runs twice.
    """
    if prepared.study is None:
        (point,) = prepared.points
        return (), [_entry(prepared, point, 1, 1, facts)]
    states = (*_GONE, *_FAILED) if rerun_failed else _GONE
    kept: list[Run] = []
    wanted: list[list[tuple[PreparedPoint, int, int]]] = []
    for repetition in range(1, prepared.study.spec.repetitions + 1):
        wanted.append([])
        for point in prepared.points:
            run = latest.get(f"{point.stem}-r{repetition}")
            name = RunName.parse(run.folder.run_id) if run else None
            attempt = name.attempt if name else 0
            if run is not None and run.state not in states and not never_submitted(run):
                kept.append(run)
                continue
            if run is not None and is_untouched(run):
                remove_runs([run.folder])
                attempt -= 1
            wanted[-1].append((point, repetition, attempt + 1))
    order = randomised_blocks(wanted, prepared.study.spec.seed)
    return tuple(kept), [_entry(prepared, *one, facts) for one in order]


def _entry(
    prepared: Prepared,
    point: PreparedPoint,
    repetition: int,
    attempt: int,
    facts: dict[str, object],
) -> Entry:
    now = datetime.now(timezone.utc)
    name = RunName(stem=point.stem, repetition=repetition, attempt=attempt)
    manifest = Manifest(
        schema=MANIFEST_SCHEMA,
        run_id=str(name) if prepared.study else single_run_id(now, point.stem),
        name=prepared.name,
        study=prepared.study.spec.name if prepared.study else None,
        axes=point.axes,
        repetition=repetition,
        attempt=attempt,
        created=now.isoformat(timespec="seconds"),
        spec=point.job.value,
        plan=point.plan,
        script_digest=point.script.digest,
        template_digest=point.script.template_digest,
        provenance={**facts, **profile_facts(prepared.site.profile)},
    )
    return manifest, point.script


def single_run_id(now: datetime, stem: str) -> str:
    """Return the run id of a single job: its time in UTC and its digest."""
    return f"{now:%Y%m%d-%H%M%S-%f}-{stem}"


def profile_facts(path: Path) -> dict[str, str]:
    """Return path and digest of the profile, because it may change later."""
    return {PROFILE: str(path), PROFILE_DIGEST: sha256_of(path) if path.is_file() else ""}


def study_manifest(prepared: Prepared) -> StudyManifest:
    """Return the list of all requested runs of the study."""
    if prepared.study is None:
        raise AssertionError("a single job has no study manifest")
    return StudyManifest(
        schema=MANIFEST_SCHEMA,
        spec=prepared.study.spec,
        baseline=prepared.study.baseline,
        points=tuple(
            StudyPoint(axes=point.axes, topology=point.plan.topology, stem=point.stem)
            for point in prepared.points
        ),
        refused=prepared.refused,
    )


def _at_other_sites(prepared: Prepared, latest: Mapping[str, Run]) -> Iterator[str]:
    """Yield a notice of the study's runs at another site than now."""
    found = {run.manifest.plan.site for run in latest.values() if run.manifest}
    if found := found - {prepared.site.name}:
        yield (
            f"its runs at {', '.join(sorted(found))} are left out of reports from now on; to keep "
            "both, submit with another --name"
        )


def options_of(site: SourcedSite, entries: Sequence[Entry]) -> ExecutorOptions:
    """Return the options of runs for a site; nested ones get the script of their allocation.

    Raises:
        PlanError: the runs do not fit into one allocation.
    """
    profile = site.value
    plan = entries[0][0].plan if entries else None
    script = None
    if any(manifest.plan.nested for manifest, _ in entries):
        runs = [(manifest.run_id, manifest.plan) for manifest, _ in entries]
        file = Path(str(entries[0][0].provenance.get(PROFILE, "")))
        script = render_allocation(allocate(site, runs, entries[0][0].name), template_path(file))
    return ExecutorOptions(
        cluster=cluster_of(profile, plan),
        limits=profile.limits,
        comment=plan.comment if plan else "",
        site=site,
        allocation=script,
    )


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
    return reached


def ready_options(
    home: Path, entries: Sequence[Entry], options: ExecutorOptions
) -> ExecutorOptions:
    """Check that a site can take its runs now, before anything is printed or written.

    Raises:
        HpcTrainError: it cannot, with the reason.
    """
    plans = [manifest.plan for manifest, _ in entries]
    return executor_of(plans[0].scheduler).ready(home, plans, options) if plans else options


def submission_notices(
    sites: Sequence[tuple[Sequence[Entry], ExecutorOptions]], max_gpu_hours: float | None
) -> list[str]:
    """Return the notices before a submission, with the cost.

    Raises:
        PlanError: all runs may cost more than `max_gpu_hours`.
    """
    groups = [[manifest.plan for manifest, _ in entries] for entries, _ in sites]
    check_budget(cost_of([plan for plans in groups for plan in plans]), max_gpu_hours)
    alone = (text for entries, _ in sites for manifest, _ in entries for text in _alone(manifest))
    said = (*alone, *(text for plans in groups for text in _site_notices(plans)))
    return list(dict.fromkeys(said))


# What joins the ranks of a script: torch.distributed, or a library on top of it.
_JOINS = re.compile(
    r"distributed|process_group|rank|accelerat|lightning|deepspeed|horovod|mpi4py"
    r"|Trainer|colossalai|megatron|ray\.|jax|tensorflow",
    re.IGNORECASE,
)


def _alone(manifest: Manifest) -> Iterator[str]:
    """Yield that several ranks of a Python script train alone, if nothing in it joins them."""
    spec = manifest.spec
    script = next((word for word in spec.command if word.endswith(".py")), "")
    path = Path(spec.workdir or "", script)
    if manifest.plan.topology.world_size > 1 and script and is_regular(path):
        if not _JOINS.search(read_regular(path).decode(errors="replace")):
            yield (
                f"{script} never calls init_process_group: unless a module that it imports does, "
                "each rank does all the work alone, and a speedup means nothing"
            )


def _site_notices(plans: Sequence[LaunchPlan], whole: str = "") -> Iterator[str]:
    """Yield the notices of a site and the cost of runs there; none for runs on this machine.

    `whole` says of what the cost is.
    """
    if not plans or find_batch_system(plans[0].scheduler).this_machine:
        return
    yield from executor_of(plans[0].scheduler).notices(plans[0])
    yield f"cost{whole}: {cost_of(plans)}"


def submit_entries(
    home: Path,
    entries: Sequence[Entry],
    options: ExecutorOptions,
    ready: Collection[RunFolder] = (),
    study: StudyManifest | None = None,
) -> tuple[RunFolder, ...]:
    """Create the runs' folders, write study.json, and submit the runs, in order.

    The folders of `ready` runs exist: the command that created them was killed. `study` is written
    before the first run.

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
        if new:
            executor_of(entries[0][0].plan.scheduler).submit(home, new, options)
    except HpcTrainError:
        left = [run for run in new if not is_there(run.submission)]
        remove_runs([run for run in left if run in created])
        if len(left) == len(new) and before is None:
            file.unlink(missing_ok=True)
        elif len(left) == len(new) and before != read_regular(file):
            write_file(file, before or b"")
        raise
    return new


def dry_run(prepared: Prepared, root: Path, max_gpu_hours: float | None = None) -> Iterator[str]:
    """Yield the messages of `submit`, then the answer of `sbatch --test-only` for each script.

    The runs would be below the results folder `root`, where nothing is written.

    Raises:
        HpcTrainError: the submission would be refused before any sbatch.
    """
    check_checkpoint_folders(prepared)
    number = prepared.study.spec.repetitions if prepared.study else 1
    plans = [point.plan for point in prepared.points for _ in range(number)]
    check_budget(cost_of(plans), max_gpu_hours)
    site = prepared.site
    if not site.batch.steps:
        check_start(prepared)
        # As `submit` asks, without its limits: they hold for runs that are missing.
        executor = executor_of(site.site.value.scheduler)
        executor.ready(root / prepared.name, plans, ExecutorOptions(site=site.site))
    # Existing runs would be kept; whether there are any depends on the results folder.
    yield from _site_notices(plans, " for the whole study" * bool(prepared.study))
    yield from preview(prepared)
    if not site.batch.steps:
        return
    if not shutil.which("sbatch"):
        yield "sbatch is not installed here, so it was not tested whether the cluster accepts this"
        return
    check_start(prepared)
    yield from _answers(cluster_of(site.site.value, plans[0]), prepared)


def _answers(cluster: SlurmEndpoint, prepared: Prepared) -> Iterator[str]:
    # Other schedulers need none of Slurm's modules.
    from hpc_train.slurm.sbatch import test_only

    study = bool(prepared.study)
    scripts = [(f" {one.stem}" if study else "", one.script) for one in prepared.points]
    if prepared.allocation is not None:
        scripts = [(" of the allocation", prepared.allocation)]
    for name, script in scripts:
        with tempfile.TemporaryDirectory(prefix="hpctrain-") as folder:
            path = Path(folder, "job.sbatch")
            path.write_text(script.text, encoding="utf-8")
            answer = test_only(cluster, path)
        yield f"sbatch --test-only{name}: {answer}"


# Directives are in the first lines of a script.
_HEAD = 4096


def check_start(prepared: Prepared) -> None:
    """Check the scheduler, and the secrets, folder, program, script and launcher of each job.

    Raises:
        SpecError: a secret, program or script does not exist, or is not executable; runs share
        their checkpoints.
        SiteProfileError: the scheduler's commands do not exist here. SubmitError:
        the launcher is not installed.
    """
    check_checkpoint_folders(prepared)
    if prepared.site.choice is not None:
        prepared.site.choice.check()
    executor_of(prepared.site.site.value.scheduler).refuse(prepared.site.site)
    check_secrets(prepared)
    local = prepared.site.batch.this_machine
    for point in prepared.points:
        folder = point.plan.workdir
        if folder is not None and not Path(folder).is_dir():
            raise SpecError(f"{point.job.origin('workdir')}: the folder {folder} does not exist")
        # The contents of an image are not visible here.
        if point.plan.container is None:
            _check_program(point, on_path=local)
        # The nodes of a cluster may have programs, after modules are loaded, that its login node
        # lacks.
        launcher = find_launcher(point.plan.launcher)
        if local and launcher.program and not shutil.which(launcher.program):
            place = point.plan.settings["launcher"].origin
            owner = f" of {launcher.package}" if launcher.package else ""
            raise SubmitError(f"{place}: {launcher.program}{owner} is not installed here")


def check_checkpoint_folders(prepared: Prepared) -> None:
    """Check that each run of a study has its own checkpoints: it would resume from another's.

    Raises:
        SpecError: two runs name one folder.
    """
    if prepared.study is None:
        return
    repetitions = prepared.study.spec.repetitions
    owners: dict[str, str] = {}
    for point in prepared.points:
        folder = str(point.job.value.env.get(CHECKPOINTS, ""))
        # A request starts a container of its own, with its own file system.
        if not folder or point.request is not None:
            continue
        first = owners.setdefault(os.path.normpath(folder), point.stem)
        if first != point.stem or repetitions > 1:
            who = f"{first} and {point.stem}" if first != point.stem else "its repetitions"
            raise SpecError(
                f"{point.job.near(f'env.{CHECKPOINTS}')}: env.{CHECKPOINTS} = {folder} is one "
                f"folder for several runs of the study ({who}): each would resume from the "
                "checkpoints of another",
                f"leave env.{CHECKPOINTS} out: each run has a folder of its own",
            )


def _check_program(point: PreparedPoint, *, on_path: bool) -> None:
    folder = Path(point.plan.workdir or ".")
    where = point.job.near("command.0")
    program, *arguments = point.job.value.command
    if "/" in program:
        _check_executable(folder / program, where)
    elif on_path and not shutil.which(program):
        near = folder / program
        hint = f"for the file in this folder write ./{program}" if near.is_file() else ""
        raise SpecError(f"{where}: the program {program!r} is not on PATH", hint)
    script = arguments[0] if arguments else ""
    path = folder / script
    if Path(program).name.startswith("python") and path.suffix == ".py" and not path.is_file():
        raise SpecError(
            f"{point.job.near('command.1')}: the script {path} does not exist{_near(path)}",
            "jobs start in the current folder; `workdir:` in the job file changes that",
        )


def _check_executable(path: Path, where: str) -> None:
    if path.is_dir():
        raise SpecError(f"{where}: {path} is a folder, not a program")
    if not path.is_file():
        hint = "name a script, or a job or study file (.yaml); ls prints the files here"
        raise SpecError(f"{where}: {path} does not exist{_near(path)}", hint)
    with path.open("rb") as stream:
        if b"\n#SBATCH " in stream.read(_HEAD):
            hint = f"name the program that it starts; hpctrain lint {path.name} checks the script"
            raise SpecError(f"{where}: {path.name} is a job script, which sbatch submits", hint)
    if not os.access(path, os.X_OK):
        raise SpecError(f"{where}: {path} is not executable", f"chmod +x {path}")


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return nearest(path.name, sorted(entry.name for entry in path.parent.iterdir()))


def check_secrets(prepared: Prepared) -> None:
    """Check each secret at the place where the job reads it.

    Raises:
        SpecError: a variable is not set here, a file is missing or readable by others.
    """
    for point in prepared.points:
        for secret in point.plan.secrets:
            place = point.job.near(f"secrets.{secret.name}")
            if secret.file is not None:
                _check_file(Path(secret.file), f"{place}: secrets.{secret.name}")
            elif secret.name not in os.environ:
                raise SpecError(
                    f"{place}: {secret.name} is not set in this shell", f"export {secret.name}=…"
                )


def _check_file(path: Path, where: str) -> None:
    try:
        found = path.stat().st_mode
        if not stat.S_ISREG(found):
            raise SpecError(f"{where}: {path} is not a regular file")
        path.open("rb").close()
    except OSError as failure:
        raise SpecError(f"{where}: {path}: {failure.strerror}") from None
    mode = stat.S_IMODE(found)
    if mode & 0o177:
        raise SpecError(f"{where}: {path} has mode {mode:o}, not 600", f"chmod 600 {path}")


# Expected half width of the 95 % interval of a ratio, n jobs against n, at 2 % noise, computed once
# (tests/scaling/resolution.py); beyond the last, widths shrink as 1/sqrt(n).
WIDTHS = {
    2: 0.1388, 3: 0.0494, 4: 0.0354, 5: 0.0293, 6: 0.0257, 7: 0.0232, 8: 0.0213, 9: 0.0199,
    10: 0.0187, 11: 0.0177, 12: 0.0168, 13: 0.0161, 14: 0.0154, 15: 0.0149, 16: 0.0144, 17: 0.0139,
    18: 0.0135, 19: 0.0131, 20: 0.0127,
}  # fmt: skip
LARGEST = max(WIDTHS)
USUAL_REPETITIONS = (3, 5, 10, 20)


def preview(prepared: Prepared) -> Iterator[str]:
    """Yield the resolution of the repetitions of a study; empty for a job."""
    if prepared.study is None:
        return
    n = prepared.study.spec.repetitions
    more = [other for other in USUAL_REPETITIONS if other > n][:2]
    others = ", ".join(f"{other}: {_resolved(other)}" for other in more)
    aside = f" ({others})" if others else ""
    if n < 2:
        yield f"1 repetition: no interval and no verdict; with more, at 2 % noise{aside}"
    else:
        yield f"{n} repetitions resolve about {_resolved(n)} at 2 % noise{aside}"
    if len(prepared.points) == 1:
        yield "1 point: no speedup; several sizes make one: --nodes 1,2,4, or more values in `axes`"


def _resolved(n: int) -> str:
    width = 100 * expected_width(n)
    return f"±{width:.0f} %" if width >= 2 else f"±{width:.1f} %"


def expected_width(n: int) -> float:
    """Return the expected half width of the interval of a ratio, as a share of it."""
    return WIDTHS.get(n) or WIDTHS[LARGEST] * sqrt(LARGEST / n)
