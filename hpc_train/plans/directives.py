"""Options of a job in its script, of Slurm and of PBS: set, added, or refused by the site."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from hpc_train.base.errors import PlanError
from hpc_train.base.registry import resolve
from hpc_train.base.slurm_options import DIRECTIVE_VALUE, directive_text, gres
from hpc_train.base.values import Duration, Memory, Value
from hpc_train.jobs.job import SourcedJob, Topology
from hpc_train.plans.explanations import explanations, missing_option
from hpc_train.plans.launchers.base import gpu_options
from hpc_train.plans.node_and_rank_counts import (
    QUEUE_OPTIONS,
    memory_options,
    value_in,
    word_in,
    written,
)
from hpc_train.plans.plan import Launch, Setting
from hpc_train.plans.queue_limits import partition_named
from hpc_train.sites.batch_system import BatchSystem, find_batch_system
from hpc_train.sites.profile import PbsDialect, SourcedSite

# Prefix of the settings of options that job and site add.
EXTRA = "directives."
Builder = Callable[[SourcedSite, dict[str, Setting], Topology, Launch], tuple[tuple[str, str], ...]]


# Directives whose name differs from that of their setting.
_SETTINGS = {
    "job-name": "name",
    "ntasks-per-node": "tasks_per_node",
    "cpus-per-task": "cpus_per_task",
    "gpus-per-node": "gpus_per_node",
    "gres": "gpus_per_node",
    "signal": "signal_before_end",
    "requeue": "lifecycle.requeue_on",
    "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node",
    "mem-per-gpu": "mem",
    "mem-per-cpu": "mem",
    # Of PBS, whose -A or -P is the project.
    "N": "name",
    "q": "partition",
    "A": "account",
    "P": "account",
    "select": "nodes",
    "place": "exclusive",
    "ncpus": "cpus_per_task",
    "ngpus": "gpus_per_node",
    "walltime": "time",
}


def setting_of(option: str, settings: Mapping[str, Setting]) -> Setting:
    """Return the setting of a directive, with the directive's own reason if it has one."""
    key = _SETTINGS.get(option, option.replace("-", "_"))
    # Of the queue, or of a request of the job.
    found = settings.get(f"select.{option}") or settings.get(key)
    added, resources = settings.get(f"directives.{option}"), settings.get("directives.l")
    if resources is not None and f"{option}=" in str(resources.value):
        found = resources
    # `false` only removes the site's option.
    if added is not None and added.value is not False:
        found = added
    origin = found.origin if found else "rule"
    reason = explanations().directives.get(option)
    why = reason.why if reason else (found.why if found else "")
    return Setting(value=found.value if found else None, origin=origin, why=why)


class Size(Value, frozen=True, kw_only=True):
    """The resources that a job requests; a slot is a task of Slurm.

    `mem` is the memory of a node, a text if it is not a size. Without `cpus_per_slot` the cores
    come with the nodes.
    """

    nodes: int
    slots_per_node: int
    cpus_per_slot: int | None
    gpus_per_node: int
    gpu_type: str | None
    mem: Memory | str | None
    time: Duration | None
    exclusive: bool


def resolve_directives(
    site: SourcedSite, settings: dict[str, Setting], topology: Topology, launch: Launch
) -> tuple[tuple[str, str], ...]:
    """Return the options of a job in order, as its batch system builds them.

    Raises:
        PlanError: a value cannot be written, or the scheduler has no such option.
    """
    builder = find_batch_system(site.value.scheduler).directives
    if not builder:
        return ()
    _check_words(settings)
    of_system = cast(Builder, resolve(builder))
    return of_system(site, settings, topology, launch)


def of_slurm(
    site: SourcedSite, settings: dict[str, Setting], topology: Topology, launch: Launch
) -> tuple[tuple[str, str], ...]:
    """Return sbatch options in order; a launcher that starts one process a node gets one slot
    with all the cores of its ranks.
    """
    ranks_per_slot = topology.tasks_per_node // launch.slots_per_node
    each = topology.cpus_per_task
    size = Size(
        nodes=topology.nodes,
        slots_per_node=launch.slots_per_node,
        cpus_per_slot=None if each is None else each * ranks_per_slot,
        gpus_per_node=topology.gpus_per_node,
        gpu_type=value_in(settings, "gpu_type"),
        mem=value_in(settings, "mem"),
        time=value_in(settings, "time"),
        exclusive=bool(value_in(settings, "exclusive")),
    )
    queue = {key: word_in(settings, key) for key in QUEUE_OPTIONS}
    queue["network"] = value_in(settings, "network")
    return sbatch_options(site, settings["name"].value, queue, size)


def sbatch_options(
    site: SourcedSite, name: str, queue: Mapping[str, str | None], size: Size
) -> tuple[tuple[str, str], ...]:
    """Return options and values in order; an empty value is a bare flag."""
    cores = size.slots_per_node * (size.cpus_per_slot or 0)
    options: dict[str, Any] = {
        "job-name": name,
        **{key: queue[key] for key in QUEUE_OPTIONS},
        "nodes": size.nodes,
        "ntasks-per-node": size.slots_per_node,
        "cpus-per-task": size.cpus_per_slot if site.value.cpu_request == "allowed" else None,
        **gpu_options(
            site.value.gpu_request,
            size.gpu_type,
            size.gpus_per_node,
            size.nodes,
            size.slots_per_node,
        ),
        **memory_options(site.value.mem_request, size.mem, size.gpus_per_node, cores),
        "time": size.time,
        "exclusive": "" if size.exclusive else None,
        "network": queue.get("network"),
        # A requeued job must append to its log, unless the site refuses the option.
        "open-mode": "append" if refused_option("open-mode", site) is None else None,
    }
    return tuple((key, str(value)) for key, value in options.items() if value is not None)


def extra_settings(job: SourcedJob, site: SourcedSite) -> dict[str, Setting]:
    """Return `directives.NAME` for each option that job or site adds; a job's wins."""
    both = (site.value.directives, site), (job.value.directives, job)
    return {
        f"{EXTRA}{name}": Setting(value=value, origin=source.near(f"{EXTRA}{name}"))
        for directives, source in both
        for name, value in directives.items()
    }


def extra_directives(
    settings: Mapping[str, Setting], ours: Iterable[tuple[str, str]], batch: BatchSystem
) -> tuple[tuple[str, str], ...]:
    """Return added options and values in order, behind `ours`.

    Raises:
        PlanError: hpctrain already sets the option for this job, or it is of another scheduler.
    """
    known = dict(ours)
    found: list[tuple[str, str]] = []
    for key, setting in settings.items():
        text = directive_text(setting.value) if key.startswith(EXTRA) else None
        if text is None:
            continue
        option, place = key.removeprefix(EXTRA), f"{setting.origin}: {key}"
        if batch.letters == bool(option[1:]):
            hint = "a resource is `l: NAME=VALUE`" if batch.letters else "write long names"
            raise PlanError(f"{place}: {batch.submit} has no option {option!r}", hint)
        for name, value in batch.options_in(option, text):
            if name in known:
                there = batch.directive(name, known[name]).partition(" ")[2]
                raise PlanError(
                    f"{place}: this job has {there} already, and {batch.submit} takes only the "
                    "last of two"
                )
            gpus = known.get("gpus-per-node")
            if gpus and name == "gres" and any(one.name == "gpu" for one in gres(value)):
                raise PlanError(
                    f"{place}: this job has --gpus-per-node={gpus} already, and Slurm refuses "
                    f"--gres={value} beside it from 26.05 on",
                    "leave the GPUs out of gres; resources.gpus_per_node requests them",
                )
            found.append((name, value))
    return tuple(found)


def check_forbidden(
    directives: tuple[tuple[str, str], ...], site: SourcedSite, settings: dict[str, Setting]
) -> None:
    """Refuse a job that needs an option which the site refuses.

    Raises:
        PlanError: with the site's reason.
    """
    batch = find_batch_system(site.value.scheduler)
    for option, _ in directives:
        spelled = refused_option(option, site)
        if spelled is not None:
            raise PlanError(
                f"{setting_of(option, settings).origin}: {site.value.name} refuses "
                f"{batch.option(option)}: "
                f"{site.value.forbidden[spelled]} ({site.near(f'forbidden.{spelled}')})",
                "leave it out of the job; if no job states it, correct the profile "
                "(gpu_request, cpu_request, mem_request)",
            )


def refused_option(option: str, site: SourcedSite) -> str | None:
    """Return the profile's spelling of an option that the site refuses; None if it is allowed."""
    spelled = (name for name in site.value.forbidden if name.lstrip("-") == option)
    return next(spelled, None)


def check_version(
    directives: tuple[tuple[str, str], ...], site: SourcedSite, settings: dict[str, Setting]
) -> None:
    """Refuse an option that the site's version of Slurm does not have; it may be unknown.

    Raises:
        PlanError: with the versions that have it.
    """
    version = site.value.slurm
    if version is None:
        return
    for option, _ in directives:
        if missing := missing_option("sbatch", option, version):
            raise PlanError(
                f"{setting_of(option, settings).origin}: {missing}, and {site.value.name} has "
                f"Slurm {version} ({site.near('slurm')})",
                "leave it out, or correct `slurm` in the profile",
            )


def _check_words(settings: dict[str, Setting]) -> None:
    """Refuse values that sbatch would misread, because its options have no quoting."""
    words = {key: written(settings, key) for key in QUEUE_OPTIONS}
    for key, setting in {**words, "gpu_type": settings.get("gpu_type")}.items():
        value = setting.value if setting else None
        if setting and value is not None and not DIRECTIVE_VALUE.fullmatch(value):
            raise PlanError(
                f"{setting.origin}: {key} = {value!r} cannot be written as an #SBATCH value"
            )


# Options of jobs that PBS does not have.
_OF_SLURM = ("qos", "constraint", "network")


def of_pbs(
    site: SourcedSite, settings: dict[str, Setting], topology: Topology, launch: Launch
) -> tuple[tuple[str, str], ...]:
    """Return options of qsub and resources of `-l`, in order.

    Raises:
        PlanError: the job has an option that PBS does not have.
    """
    _check(settings)
    dialect = site.value.pbs or PbsDialect()
    node = _of_node(site, settings, topology, launch)
    exclusive, limit = bool(value_in(settings, "exclusive")), value_in(settings, "time")
    place = dialect.place or ("scatter" if dialect.shape == "select" else None)
    if dialect.shape != "select":
        _check_totals(site, settings, node, topology)
    options: dict[str, str | None] = {
        "N": settings["name"].value,
        dialect.project[1:]: word_in(settings, "account"),
        "q": word_in(settings, "partition"),
        **_requested(node, dialect, topology),
        # Where the chunks lie, and whether the nodes are shared.
        "place": ":".join(filter(None, (place, "excl" * exclusive))) or None,
        # PBS has no days.
        "walltime": None
        if limit is None
        else f"{limit // 3600:02d}:{limit % 3600 // 60:02d}:{limit % 60:02d}",
        "j": "oe",
        "k": "doe" if dialect.live_output else None,
        # A start after the loss of a node would mix its measurements with those of the first.
        "r": None if "directives.r" in settings else "n",
    }
    return tuple((name, value) for name, value in options.items() if value is not None)


def _of_node(
    site: SourcedSite, settings: dict[str, Setting], topology: Topology, launch: Launch
) -> dict[str, int]:
    """Return what the job requests on each node; memory in mebibytes."""
    each, profile = topology.cpus_per_task, site.value
    asked, mem = profile.cpu_request == "allowed", value_in(settings, "mem")
    cores = each * topology.tasks_per_node if each and asked else 0
    gpus = topology.gpus_per_node if profile.gpu_request != "none" else 0
    counts = {
        "ncpus": cores,
        "mpiprocs": launch.slots_per_node if launch.slots_per_node > 1 else 0,
        "ngpus": gpus,
        "mem": int(mem) if isinstance(mem, Memory) else 0,
    }
    return {name: count for name, count in counts.items() if count}


def _requested(node: dict[str, int], dialect: PbsDialect, topology: Topology) -> dict[str, str]:
    """Return chunks; or the totals of the job, where there are none, nor processes of a chunk."""
    if dialect.shape == "select":
        words = [f"{name}={_amount(name, count)}" for name, count in node.items()]
        words += [f"{name}={value}" for name, value in dialect.chunk.items()]
        return {"select": ":".join((str(topology.nodes), *words))}
    totals = {name: _amount(name, count * topology.nodes) for name, count in node.items()}
    return {name: total for name, total in totals.items() if name != "mpiprocs"}


def _check_totals(
    site: SourcedSite, settings: dict[str, Setting], node: dict[str, int], topology: Topology
) -> None:
    """Refuse parts of several nodes: PBS may place the totals of a flat request on fewer nodes."""
    queue = written(settings, "partition")
    entry = partition_named(site.value, queue.value) if queue else None
    whole, cores = entry[1].cpus_per_node if entry else None, node.get("ncpus")
    if topology.nodes == 1 or queue is None or not (whole and cores) or cores == whole:
        return
    raise PlanError(
        f"{queue.origin}: {queue.value} has {whole} cores for each node, but the job needs {cores} "
        f"of each of {topology.nodes} nodes; PBS gets totals only, which fit fewer nodes",
        f"use whole nodes: tasks_per_node x cpus_per_task = {whole}; or one node",
    )


def _amount(name: str, count: int) -> str:
    if name != "mem":
        return str(count)
    return f"{count}mb" if count % 1024 else f"{count // 1024}gb"


def _check(settings: dict[str, Setting]) -> None:
    variables = settings.get("directives.v")
    if variables is not None:
        raise PlanError(
            f"{variables.origin}: directives.v has no effect: qsub is called with a -v of its own, "
            "which takes precedence",
            "env sets variables in the job",
        )
    for key in _OF_SLURM:
        setting = written(settings, key)
        if setting is not None and setting.value is not None:
            raise PlanError(
                f"{setting.origin}: {key} is an option of Slurm, and PBS has none like it",
                "leave it out; a queue is `partition`, a resource `directives: {l: NAME=VALUE}`",
            )
