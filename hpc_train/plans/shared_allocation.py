"""LaunchPlan… -> Allocation, one request for several runs in turn; and what runs cost at most."""

import math
from collections.abc import Mapping, Sequence

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Duration, Memory, Value
from hpc_train.plans.directives import EXTRA, Size, sbatch_options, setting_of
from hpc_train.plans.node_and_rank_counts import ALL, QUEUE_OPTIONS, value_in
from hpc_train.plans.plan import Allocation, LaunchPlan, NestedRun
from hpc_train.plans.queue_limits import JobQueue, limits_on, queue_named
from hpc_train.sites.profile import SourcedSite

# A run takes longer than its limit: it is started, and gets 30 s to end after TERM.
TURN_S = 30
_ALONE = "`placement: independent` gives each run an allocation of its own"


def allocate(site: SourcedSite, plans: Sequence[tuple[str, LaunchPlan]], name: str) -> Allocation:
    """Request the resources of the largest plan; the runs (id, plan) execute in this order.

    Raises:
        PlanError: the runs need different queues, or more time than the partition allows.
    """
    every = [plan for _, plan in plans]
    # Two partitions may have the same options for sbatch.
    named = [(value_in(plan.settings, "partition"), plan) for plan in every]
    partition = _same("partition", dict(named))
    queue = {key: _common(every, key) for key in QUEUE_OPTIONS}
    # The options that job and site add.
    keys = dict.fromkeys(key for plan in every for key in plan.settings if key.startswith(EXTRA))
    added = {key.removeprefix(EXTRA): _common(every, key.removeprefix(EXTRA)) for key in keys}
    extra = {option: value for option, value in added.items() if value is not None}
    networks = [dict(plan.directives).get("network") for plan in every]
    queue["network"] = next(filter(None, networks), None) if "network" not in extra else None
    turns = tuple(NestedRun(run_id=run_id, time_s=plan.time_s) for run_id, plan in plans)
    place = queue_named(site.value, partition, queue["qos"])
    size = _size(every, _time(site, turns, place, max(p.topology.nodes for p in every)))
    own = sbatch_options(site, name, queue, size)
    outlives = any("no-kill" in dict(plan.directives) for plan in every)
    directives = (*own, *((("no-kill", ""),) if outlives else ()), *extra.items())
    warnings = []
    if size.time is None:
        warnings.append(
            f"a run without a time limit is among the {len(turns)} that share one allocation, so "
            "it ends at the partition's default time; give the job a time",
        )
    return Allocation(
        name=name,
        site=site.value.name,
        directives=directives,
        turns=turns,
        warnings=tuple(warnings),
    )


def _common(plans: Sequence[LaunchPlan], key: str) -> str | None:
    """Return the common value of all plans for an option of the queue."""
    return _same(key, {dict(plan.directives).get(key): plan for plan in plans})


def _same(key: str, found: Mapping[str | None, LaunchPlan]) -> str | None:
    if len(found) == 1:
        return next(iter(found))
    values = ", ".join(value or "none" for value in found)
    settings = [p.settings.get(key) or setting_of(key, p.settings) for v, p in found.items() if v]
    raise PlanError(
        f"{settings[0].origin}: {key} is {values}; with placement nested all runs have one "
        f"allocation, which has one {key}",
        f"name one {key} in the job, or: {_ALONE}",
    )


def _size(plans: Sequence[LaunchPlan], time: Duration | None) -> Size:
    slots, cpus = _slots(plans)
    options = [dict(plan.directives) for plan in plans]
    # In a plan that was read from a file, sizes are texts.
    memory = [str(plan.settings["mem"].value) for plan in plans if "mem" in plan.settings]
    sizes = [Memory.parse(text) for text in memory if text != ALL]
    types = [value_in(plan.settings, "gpu_type") for plan in plans]
    return Size(
        nodes=max(plan.topology.nodes for plan in plans),
        slots_per_node=slots,
        cpus_per_slot=cpus,
        gpus_per_node=max(plan.topology.gpus_per_node for plan in plans),
        gpu_type=next(filter(None, types), None),
        mem=ALL if ALL in memory else max(sizes, default=None),
        time=time,
        exclusive=any("exclusive" in one for one in options),
    )


def _slots(plans: Sequence[LaunchPlan]) -> tuple[int, int | None]:
    """Return slots per node and cores per slot that suffice for every plan.

    mpirun starts at most as many ranks on a node as there are slots; more slots are harmless.
    Therefore the cores of the largest plan are divided into the smallest sufficient number of equal
    slots.
    """
    slots = max(plan.launch.slots_per_node for plan in plans)
    sizes = [(plan.topology.tasks_per_node, plan.topology.cpus_per_task) for plan in plans]
    known = [ranks * each for ranks, each in sizes if each is not None]
    if len(known) < len(sizes):
        return slots, None
    cores = max(known)
    fewest = next(number for number in range(slots, cores + 1) if cores % number == 0)
    return fewest, cores // fewest


def _time(
    site: SourcedSite, turns: Sequence[NestedRun], queue: JobQueue, nodes: int
) -> Duration | None:
    """Return the sum of the time limits; None if a run has none."""
    limits = [turn.time_s for turn in turns if turn.time_s is not None]
    if len(limits) < len(turns):
        return None
    total = Duration(sum(limits) + TURN_S * len(limits))
    for most in limits_on("time", queue, nodes):
        if total > most.value:
            note = f" {most.note}" if most.note else ""
            raise PlanError(
                f"{site.near(most.key)}: {len(turns)} runs in one "
                f"allocation need {total} ({TURN_S} s each beside their own limits), but "
                f"{site.value.name} {most.who} gives a job at most {most.value}{note}",
                f"fewer repetitions or a shorter time; {_ALONE}",
            )
    return total


class Cost(Value, frozen=True, kw_only=True):
    """An upper bound: every run until its time limit; None where a run has no limit.

    GPU-hours count requested GPUs, core-hours nodes x ranks x cores of each rank; None where the
    cores of a node are unknown. An allocation of `exclusive` nodes includes all their resources,
    which a plan does not know.
    """

    runs: int
    gpu_hours: float | None
    core_hours: float | None
    exclusive: bool = False

    def __str__(self) -> str:
        """Return the cost on one line."""
        runs = f"{self.runs} run{'s' if self.runs != 1 else ''}"
        if self.gpu_hours is None:
            return f"{runs} without a time limit: the cost has no bound (--time sets one)"
        gpus = f"{self.gpu_hours:.4g} GPU-hours" if self.gpu_hours else "no GPUs"
        whole = ", but exclusive nodes may be charged whole" if self.exclusive else ""
        cores = "" if self.core_hours is None else f", {self.core_hours:.4g} core-hours"
        return f"{runs}: at most {gpus}{cores}{whole}"


def cost_of(plans: Sequence[LaunchPlan]) -> Cost:
    """Return the maximum cost of runs; runs that share an allocation use its largest size."""
    if any(plan.time_s is None for plan in plans):
        return Cost(runs=len(plans), gpu_hours=None, core_hours=None)
    sizes = [plan.topology for plan in plans]
    nodes = [size.nodes for size in sizes]
    gpus = [size.gpus_per_node for size in sizes]
    unknown = any(size.cpus_per_task is None for size in sizes)
    cores = [size.tasks_per_node * (size.cpus_per_task or 0) for size in sizes]
    if any(plan.nested for plan in plans):
        nodes, gpus, cores = ([max(each)] * len(plans) for each in (nodes, gpus, cores))
    hours = [((plan.time_s or 0) + (TURN_S if plan.nested else 0)) / 3600 for plan in plans]
    return Cost(
        runs=len(plans),
        gpu_hours=sum(n * g * h for n, g, h in zip(nodes, gpus, hours, strict=True)),
        core_hours=None
        if unknown
        else sum(n * c * h for n, c, h in zip(nodes, cores, hours, strict=True)),
        exclusive=any("exclusive" in dict(plan.directives) for plan in plans),
    )


def check_budget(cost: Cost, max_gpu_hours: float | None) -> None:
    """Refuse a submission whose known cost exceeds the user's limit.

    Raises:
        PlanError: it exceeds the limit or has no bound, or the limit is not a number of hours.
    """
    if max_gpu_hours is None:
        return
    if not 0 <= max_gpu_hours < math.inf:
        raise PlanError(
            f"--max-gpu-hours {max_gpu_hours:g}: not a number of hours, 0 or more",
            "--max-gpu-hours 100",
        )
    if cost.gpu_hours is None:
        raise PlanError(
            f"--max-gpu-hours {max_gpu_hours:g} cannot be checked: {cost}",
            "add `time:` to the job's resources, or --time 1h",
        )
    if cost.gpu_hours > max_gpu_hours:
        raise PlanError(
            f"--max-gpu-hours {max_gpu_hours:g}: {cost}",
            "fewer repetitions or points, a shorter --time, or a larger limit",
        )
