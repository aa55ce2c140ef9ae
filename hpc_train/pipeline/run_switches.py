"""The switches of the nodes of runs, from switches.json, and of a cluster, from its controller."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.json_files import to_json
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.run import Run
from hpc_train.model.submission import SlurmEndpoint, Submission
from hpc_train.model.switch_topology import RunSwitches, SwitchTopology
from hpc_train.registry import find_batch_system
from hpc_train.runs.log_result_cache import read_cache, write_cache
from hpc_train.runs.node_list import nodes_of
from hpc_train.submissions.slurm.switches import cluster_switches

_decode = msgspec.json.Decoder(RunSwitches).decode


def run_switches(runs: Sequence[Run], *, ask: bool) -> Mapping[str, RunSwitches]:
    """Return the switches or blocks of each run on several nodes, as far as Slurm knows them.

    With `ask`, the controller of each cluster is asked once if a run has no stored answer; its
    answer is stored, because nodes may be connected in another way later.
    """
    found: dict[str, RunSwitches] = {}
    unknown: dict[SlurmEndpoint, list[Run]] = {}
    for run in runs:
        submission = run.submission
        if submission is None or not _is_job(submission) or len(nodes_of(run)) < 2:
            continue
        stored = _stored(run, submission.native_id)
        if stored is not None:
            found[run.folder.run_id] = stored
        elif ask and os.access(run.folder.path, os.W_OK):
            unknown.setdefault(submission.cluster, []).append(run)
    found.update(_asked(unknown))
    return {name: one for name, one in found.items() if one.leaves}


def with_live_switches(machine: MachineSize) -> MachineSize:
    """Return the machine with the nodes of a leaf switch or block, if the controller knows any."""
    _, switches = cluster_switches(SlurmEndpoint())
    if switches is None or len(switches.leaves) < 2:
        return machine
    key = "nodes_per_switch" if switches.kind == "tree" else "nodes_per_block"
    known: dict[str, int | None] = {"nodes_per_switch": None, "nodes_per_block": None}
    sources = {name: text for name, text in machine.sources.items() if name not in known}
    return msgspec.structs.replace(
        machine,
        **{**known, key: switches.most_nodes},
        sources={**sources, key: "scontrol show topology"},
    )


def _is_job(submission: Submission) -> bool:
    return submission.answered and bool(find_batch_system(submission.executor).steps)


def _stored(run: Run, job: str) -> RunSwitches | None:
    try:
        stored = read_cache(run.folder.switches, _decode)
    except LogParseError:
        return None
    return stored if stored is not None and stored.job == job else None


def _asked(unknown: Mapping[SlurmEndpoint, Sequence[Run]]) -> Iterator[tuple[str, RunSwitches]]:
    for cluster, runs in unknown.items():
        answered, switches = cluster_switches(cluster)
        for run in runs if answered else ():
            place = _place(run, switches)
            write_cache(run.folder.switches, to_json(place))
            yield run.folder.run_id, place


def _place(run: Run, switches: SwitchTopology | None) -> RunSwitches:
    job, nodes = run.submission.native_id if run.submission else "", nodes_of(run)
    if switches is None:
        return RunSwitches(job=job)
    return RunSwitches(
        job=job,
        kind=switches.kind,
        leaves=len(switches.leaves_of(nodes)),
        hops=switches.hops(nodes),
    )
