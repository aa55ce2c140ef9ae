"""Manifests and scripts that were planned for one or several sites -> one submission per site."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hpc_train.errors import HpcTrainError
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import PROFILE, Manifest, Run, RunFolder
from hpc_train.model.site import SiteProfile
from hpc_train.model.study import StudyManifest
from hpc_train.model.submission import JobState
from hpc_train.model.value import Sourced, Value
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.run_states import executor_of
from hpc_train.pipeline.submission_checks import check_site
from hpc_train.pipeline.submit_runs import Entry, executor_options, submit_runs
from hpc_train.plans.cost import check_budget, cost_line, cost_of, price_of_nodes
from hpc_train.registry import find_batch_system
from hpc_train.runs.node_faults import bad_nodes, node_faults
from hpc_train.sites.load import load_site
from hpc_train.submissions.base import ExecutorOptions

_AGAIN = "the same command submits what is missing"


class SiteBatch(Value, frozen=True, kw_only=True):
    """The runs for one site, with its options."""

    site: Sourced[SiteProfile]
    entries: tuple[Entry, ...]
    options: ExecutorOptions

    @property
    def is_local(self) -> bool:
        """Whether the runs use no scheduler."""
        return find_batch_system(self.site.value.scheduler).this_machine


def batch_of(entries: Sequence[Entry]) -> SiteBatch:
    """Return runs that were planned for one site, with the options of its profile.

    Raises:
        HpcTrainError: the profile, or its scheduler, does not exist.
    """
    site = _site_of(entries[0][0])
    check_site(site)
    return SiteBatch(site=site, entries=tuple(entries), options=executor_options(site, entries))


def prepared_batches(
    prepared: Prepared, entries: Mapping[str, Sequence[Entry]]
) -> tuple[SiteBatch, ...]:
    """Return the runs of each site that has some, in the order of the sites; else the first site.

    `entries` are the runs by the name of their site.

    Raises:
        PlanError: the runs of a nested study do not fit into one allocation.
    """
    chosen = [site for site in prepared.sites if entries[site.name]] or [prepared.first]
    return tuple(
        SiteBatch(
            site=site.site,
            entries=tuple(entries[site.name]),
            options=executor_options(site.site, entries[site.name]),
        )
        for site in chosen
    )


def _site_of(manifest: Manifest) -> Sourced[SiteProfile]:
    """Load the profile that the run was planned with, or by name if the file was removed."""
    file = str(manifest.provenance.get(PROFILE, ""))
    return load_site(file if file and Path(file).is_file() else manifest.plan.site)


def without_failed_nodes(
    batch: SiteBatch,
    runs: Sequence[Run],
    say: Callable[[str], None],
    others: Sequence[Run] = (),
) -> SiteBatch:
    """Exclude the nodes where earlier runs of the same site failed, and bad ones of other runs."""
    if batch.is_local:
        say(f"{batch.site.value.name} is one node, which is used again")
        return batch
    names = {one[0].plan.site for one in batch.entries}
    beside = [one for one in others if one.manifest and one.manifest.plan.site in names]
    exclude = _failed_nodes(runs, bad_nodes(node_faults(beside, time.time())), say)
    _say_used_again(batch, exclude, say)
    options = msgspec.structs.replace(batch.options, exclude=exclude)
    return msgspec.structs.replace(batch, options=options)


def _say_used_again(batch: SiteBatch, exclude: Sequence[str], say: Callable[[str], None]) -> None:
    """A list of hosts may be too short to leave one out; it is then used last."""
    left = [host for host in batch.site.value.hosts if host.name not in exclude]
    nodes = max(manifest.plan.topology.nodes for manifest, _ in batch.entries)
    if batch.site.value.hosts and len(left) < nodes:
        name = batch.site.value.name
        say(f"{name} has too few other hosts for {nodes} nodes: they are used again")


def _failed_nodes(
    runs: Sequence[Run], bad: Sequence[str], say: Callable[[str], None]
) -> tuple[str, ...]:
    """Return the nodes on which a rank failed first, the broken ones of lost runs, and bad ones."""
    blamed = set(bad) | {
        run.status.failure.host.partition(".")[0]
        for run in runs
        if run.status is not None
        and run.status.failure is not None
        and not run.status.failure.lost_peer
    }
    for run in runs:
        if run.status is not None and run.status.bad_nodes:
            blamed.update(run.status.bad_nodes.split(","))
    # A submission, which excludes no nodes, needs none of Slurm's modules for another scheduler.
    from hpc_train.submissions.slurm.slurm_commands import broken_nodes

    for run in runs:
        lost = run.state in (JobState.NODE_FAIL, JobState.LOST)
        if run.submission and lost and find_batch_system(run.submission.executor).steps:
            blamed.update(broken_nodes(run.submission.cluster))
    nodes = tuple(sorted(blamed))
    say(f"without the nodes {', '.join(nodes)}" if nodes else "no node is known to have failed")
    return nodes


def ready_batches(home: Path, batches: Sequence[SiteBatch]) -> tuple[SiteBatch, ...]:
    """Check that each site can take its runs now, before anything is printed or written.

    Raises:
        HpcTrainError: one cannot, with the reason.
    """
    return tuple(_ready(home, batch) if batch.entries else batch for batch in batches)


def _ready(home: Path, batch: SiteBatch) -> SiteBatch:
    plans = [manifest.plan for manifest, _ in batch.entries]
    executor = executor_of(batch.site.value.scheduler)
    options = executor.ready(home, plans, batch.options)
    return msgspec.structs.replace(batch, options=options)


def submission_notices(
    batches: Sequence[SiteBatch], max_gpu_hours: float | None
) -> tuple[str, ...]:
    """Return the notices before a submission, with the cost at each site.

    Raises:
        PlanError: all runs may cost more than `max_gpu_hours`.
    """
    plans = [[manifest.plan for manifest, _ in batch.entries] for batch in batches]
    check_budget(cost_of([plan for own in plans for plan in own]), max_gpu_hours)
    texts = (
        text
        for batch, own in zip(batches, plans, strict=True)
        for text in site_notices(batch.site.value, own, at_site=len(batches) > 1)
    )
    return tuple(dict.fromkeys(texts))


def site_notices(
    site: SiteProfile, plans: Sequence[LaunchPlan], whole: str = "", *, at_site: bool = False
) -> Iterator[str]:
    """Yield the notices of a site and the cost of runs there; none for runs on this machine.

    `whole` says of what the cost is, and `at_site` adds where it is.
    """
    if find_batch_system(site.scheduler).this_machine or not plans:
        return
    yield from executor_of(site.scheduler).notices(plans[0])
    at = f" at {site.name}" if at_site else ""
    cost = cost_line(cost_of(plans), site.report, price_of_nodes(plans, site))
    yield f"cost{whole}{at}: {cost}"


def submit_batches(
    home: Path,
    batches: Sequence[SiteBatch],
    say: Callable[[str], None],
    ready: Collection[RunFolder] = (),
    study: StudyManifest | None = None,
) -> tuple[RunFolder, ...]:
    """Submit to one site after the other; if one refuses, report what was submitted.

    The folders of `ready` runs exist already; `study` is written before the first run.

    Raises:
        HpcTrainError: folders of runs that were not submitted are removed.
    """
    new: tuple[RunFolder, ...] = ()
    for batch in batches:
        try:
            new += submit_runs(home, batch.entries, batch.options, study, ready)
        except HpcTrainError as failure:
            name = f"{batch.site.value.name}: "
            if len(batches) > 1 and not failure.message.startswith(name):
                failure.message = f"{name}{failure.message}"
            if new:
                total = sum(len(each.entries) for each in batches)
                say(f"{len(new)} of {total} runs were submitted, to other sites")
                failure.hint = f"{failure.hint}; {_AGAIN}".removeprefix("; ")
            raise
    return new
