"""LaunchPlan… -> Allocation: one request that holds them all, and the turns that they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.errors import PlanError
from hpc_train.model.plan import Allocation, LaunchPlan, Text, Turn
from hpc_train.model.units import Duration, Memory
from hpc_train.plans.directives import QUEUE, Size, sbatch_options
from hpc_train.plans.extra import PREFIX
from hpc_train.plans.reasons import setting_of
from hpc_train.plans.resolve import Site, partition_named

# A run's turn is longer than its limit: it is started, and what outlives TERM gets 30 s to end.
TURN_S = 30
_ALONE = "`placement: independent` gives each run an allocation of its own"


def allocate(site: Site, plans: Sequence[tuple[str, LaunchPlan]], name: str) -> Allocation:
    """Ask once for what the largest plans need; the runs (id, plan) take turns in this order.

    Raises:
        PlanError: the runs want different queues, or more time than the partition gives a job.
    """
    if not plans:
        raise AssertionError("an allocation without runs")
    every = [plan for _, plan in plans]
    queue = {key: _common(every, key) for key in QUEUE}
    extra = dict(_extra(every))
    networks = [dict(plan.directives).get("network") for plan in every]
    queue["network"] = next(filter(None, networks), None) if "network" not in extra else None
    turns = tuple(Turn(run_id=run_id, time_s=plan.time_s) for run_id, plan in plans)
    size = _size(every, _time(site, turns, queue["partition"]))
    outlives = any("no-kill" in dict(plan.directives) for plan in every)
    return Allocation(
        name=name,
        site=site.value.name,
        directives=(
            *sbatch_options(site, name, queue, size),
            *((("no-kill", ""),) if outlives else ()),
            *extra.items(),
        ),
        turns=turns,
        warnings=(*_no_limit(size, len(turns)), *_more_gpus(every, size.gpus_per_node)),
    )


def _common(plans: Sequence[LaunchPlan], key: str) -> str | None:
    """Return the one value that all plans have for a word of the queue."""
    found = {dict(plan.directives).get(key): plan for plan in plans}
    if len(found) == 1:
        return next(iter(found))
    values = ", ".join(value or "none" for value in found)
    place = next(
        setting_of(key, plan.settings).origin for value, plan in found.items() if value is not None
    )
    raise PlanError(
        f"{place}: {key} is {values}; with placement nested all runs have one allocation, "
        f"which has one {key}",
        _ALONE,
    )


def _extra(plans: Sequence[LaunchPlan]) -> Iterator[tuple[str, str]]:
    """Yield the options that job and site ask for by themselves."""
    keys = dict.fromkeys(key for plan in plans for key in plan.settings if key.startswith(PREFIX))
    for key in keys:
        value = _common(plans, key.removeprefix(PREFIX))
        if value is not None:
            yield key.removeprefix(PREFIX), value


def _size(plans: Sequence[LaunchPlan], time: Duration | None) -> Size:
    slots, cpus = _slots(plans)
    options = [dict(plan.directives) for plan in plans]
    memory = [Memory.parse(one["mem"]) for one in options if "mem" in one]
    return Size(
        nodes=max(plan.topology.nodes for plan in plans),
        slots_per_node=slots,
        cpus_per_slot=cpus,
        gpus_per_node=max(plan.topology.gpus_per_node for plan in plans),
        mem=max(memory, default=None),
        time=time,
        exclusive=any("exclusive" in one for one in options),
    )


def _slots(plans: Sequence[LaunchPlan]) -> tuple[int, int]:
    """Return slots per node and cores per slot that hold every plan, without a core too many.

    mpirun starts no more ranks on a node than there are slots, but more slots do no harm. So the
    cores of the largest plan are cut into the fewest equal slots that suffice.
    """
    slots = max(plan.launch.slots_per_node for plan in plans)
    cores = max(plan.topology.tasks_per_node * plan.topology.cpus_per_task for plan in plans)
    fewest = next(number for number in range(slots, cores + 1) if cores % number == 0)
    return fewest, cores // fewest


def _time(site: Site, turns: Sequence[Turn], partition: str | None) -> Duration | None:
    """Return the sum of the turns; None if one of them has no end."""
    limits = [turn.time_s for turn in turns if turn.time_s is not None]
    if len(limits) < len(turns):
        return None
    total = Duration(sum(limits) + TURN_S * len(limits))
    found = partition_named(partition, site)
    most = found[1].max_time if found else None
    if found and most is not None and total > most:
        raise PlanError(
            f"{site.origin(f'partitions.{found[0]}.max_time')}: {len(turns)} runs in one "
            f"allocation need {total} ({TURN_S} s each beside their own limits), but "
            f"{site.value.name} {found[1].name} gives a job at most {most}",
            f"fewer repetitions or a shorter time; {_ALONE}",
        )
    return total


def _no_limit(size: Size, runs: int) -> tuple[str, ...]:
    if size.time is not None:
        return ()
    return (
        f"a run without a time limit is among the {runs} that share one allocation, so it ends "
        "when the partition's default time does; give the job a time",
    )


def _more_gpus(plans: Sequence[LaunchPlan], gpus: int) -> tuple[str, ...]:
    """Warn of ranks that will see GPUs which they did not ask for: only srun can hide them."""
    mixed = {
        (plan.launcher, plan.topology.gpus_per_node)
        for plan in plans
        if plan.topology.gpus_per_node < gpus
        and not (plan.topology.gpus_per_node and plan.launch.argv[0] == Text(text="srun"))
    }
    return tuple(
        f"{launcher} with {wanted} GPUs per node: its ranks see all {gpus} of the allocation; "
        "they must choose by LOCAL_RANK"
        for launcher, wanted in sorted(mixed)
    )
