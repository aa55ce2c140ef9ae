"""Cluster and probed nodes -> the text of a first site profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from hpc_train.model.hardware import Hardware
from hpc_train.model.live_cluster import Cluster, Mpi
from hpc_train.model.partition import Arch
from hpc_train.model.site import SCHEMA
from hpc_train.model.switch_topology import SwitchTopology
from hpc_train.model.value import Value
from hpc_train.probe.draft_network import around_lines, network_lines
from hpc_train.probe.draft_queues import partition_lines, qos_lines
from hpc_train.probe.infer_settings import guess
from hpc_train.probe.node_kinds import NodeShape
from hpc_train.probe.yaml_text import GUESSED, line, question, remark


class Findings(Value, frozen=True, kw_only=True):
    """Input of a draft: the live cluster, the probed nodes, and the programs of this login node.

    `launchers`: each launcher of hpctrain, with the program that must be on the PATH; empty if
    the launcher is part of Slurm or of the Python environment of the user.
    """

    name: str
    date: str
    cluster: Cluster
    hardware: Mapping[NodeShape, Hardware]
    launchers: Mapping[str, str]
    programs: tuple[str, ...] = ()
    slurm_conf: str | None = None
    switches: SwitchTopology | None = None


def draft(findings: Findings) -> str:
    """Return the text of the profile; unknown values are questions."""
    nodes = tuple(findings.hardware.values())
    # The profile is mainly for nodes with GPUs.
    main = next((node for node in nodes if node.gpus), next(iter(nodes), None))
    network = guess(main) if main else None
    parts = (
        _head(findings, main),
        _launchers(findings, main),
        partition_lines(findings.cluster, findings.hardware, network, findings.switches),
        _choice(findings.cluster),
        qos_lines(findings.cluster),
        _requests(findings.cluster, main),
        network_lines(main, network),
        around_lines(findings.cluster, main),
    )
    return "\n\n".join("\n".join(part) for part in map(tuple, parts) if part) + "\n"


def _head(findings: Findings, main: Hardware | None) -> Iterator[str]:
    cluster = findings.cluster
    yield remark(
        "A draft of `hpctrain site init`: check every line, answer the questions, then run"
    )
    yield remark(f"hpctrain site show {findings.name}")
    for said in (*cluster.unread, *(main.unread if main else ())):
        yield remark(said)
    yield line("schema", SCHEMA)
    yield line("name", findings.name)
    yield line(
        "description", f"Slurm cluster {cluster.name}", "which system, where, what hardware?"
    )
    yield question("operator", "…", "which institution operates it?")
    yield question("url", "https://…", "address of its documentation?")
    yield line("verified_on", findings.date)
    yield "sources:"
    asked = ", ".join(node.host for node in findings.hardware.values())
    more = f", and a job on {asked}" if asked else ""
    yield line("  - what", f"scontrol and sinfo of {cluster.name}{more}")
    yield line("    date", findings.date)
    yield line("    confidence", "medium")
    yield "detect:"
    yield line("clusters", (cluster.name,), depth=1)
    yield line("scheduler", "slurm")
    if version := ".".join(cluster.version.split(".")[:4]):
        yield f'slurm: "{version}"'
    if findings.slurm_conf:
        yield line("slurm_conf", findings.slurm_conf, "from $SLURM_CONF")
    arches = {node.arch for node in cluster.nodes}
    if len(arches) == 1 and arches <= set(get_args(Arch)):
        yield line("arch", arches.pop())


def _launchers(findings: Findings, main: Hardware | None) -> Iterator[str]:
    programs = main.software.programs if main else findings.programs
    there = [program for program in findings.launchers.values() if program in programs]
    allowed = (name for name, needed in findings.launchers.items() if needed in ("", *there))
    where = f"on the PATH of {main.host}" if main else "on the PATH here; also on the nodes?"
    yield "launchers:"
    chosen = f"{GUESSED}: hpctrain's choice; which one does the site recommend?"
    yield line("default", "torchrun", chosen, depth=1)
    found = f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} {where}" if there else ""
    yield line("allowed", tuple(allowed), found, depth=1)
    yield question(
        "forbidden", "{mpirun: reason}", "which launchers does the site forbid?", depth=1
    )
    yield from _mpi(findings.cluster.mpi)
    if main is not None and main.software.mpirun:
        yield line("openmpi", main.software.mpirun, depth=1)


def _mpi(mpi: Mpi) -> Iterator[str]:
    """State the default of the cluster; without one, the type depends on the MPI of the user."""
    there = [name for name in mpi.plugins if name not in (*mpi.broken, "none")]
    listed = f"srun --mpi=list: {', '.join(mpi.plugins)}"
    if mpi.default not in ("", "none") and (mpi.default in there or not mpi.plugins):
        yield line("mpi", mpi.default, "MpiDefault of slurm.conf", depth=1)
    elif there:
        ask = f"{listed}; MpiDefault is {mpi.default or 'unknown'}: which one do ranks of MPI need?"
        yield question("mpi", there[0], ask, depth=1)


def _choice(cluster: Cluster) -> Iterator[str]:
    if not any(partition.default for partition in cluster.partitions):
        yield line("partition_choice", "job", "Slurm has no default partition")


def _requests(cluster: Cluster, main: Hardware | None) -> Iterator[str]:
    counted = any(node.gpus for node in cluster.nodes)
    typed = any(len(node.gpu_kinds) > 1 for node in cluster.nodes)
    if counted:
        modern = "cons" in cluster.limits.select
        why = f"Slurm counts GPUs with {cluster.limits.select or 'an unknown SelectType'}"
        yield line("gpu_request", "gpus-per-node" if modern else "gres", f"{GUESSED}: {why}")
    elif not cluster.nodes:
        yield question("gpu_request", "gpus-per-node", "which option requests GPUs?")
    else:
        yield line("gpu_request", "none", f"{GUESSED}: Slurm counts no GPUs on any node")
    if typed:
        yield line("gpu_request_typed", True, f"{GUESSED}: some nodes have several types")
    yield question("mem_request", "allowed", "must a job request memory, or must it not?")
    accounts = ", ".join(dict.fromkeys(one.account for one in cluster.associations))
    known = f"yours: {accounts}; " if accounts else ""
    yield question("account", "{required: true}", f"{known}must a job state its account?")
    submit = [a.max_submit_jobs for a in cluster.associations if a.max_submit_jobs]
    size = cluster.limits.max_array_size
    if size is not None or submit:
        yield "limits:"
    if size is not None:
        yield line("max_array_size", size, depth=1)
    if submit:
        yield line("max_submit_jobs", min(submit), depth=1)
