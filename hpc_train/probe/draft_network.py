"""Hardware -> network, containers, modules, storage and internet access in a draft."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.hardware import Hardware, Software
from hpc_train.model.live_cluster import Cluster
from hpc_train.model.node_topology import nearest_nics
from hpc_train.probe.infer_settings import Guess
from hpc_train.probe.yaml_text import GUESSED, line, question, remark


def network_lines(main: Hardware | None, network: Guess | None) -> Iterator[str]:
    """Yield `network:`, or the question for it."""
    if main is None or network is None or network.fabric is None:
        yield question(
            "network",
            "{fabric: infiniband, interfaces: [ib0]}",
            "which network connects the nodes?",
        )
        yield remark("`hpctrain site init --probe` runs a job on a node of each kind")
        return
    yield "network:"
    yield line("fabric", network.fabric, f"{GUESSED}: {network.why}", depth=1)
    if network.interfaces:
        others = f"; also up: {', '.join(network.others)}" if network.others else ""
        yield line("interfaces", network.interfaces, f"{GUESSED}{others}", depth=1)
    if network.hcas:
        yield line("hcas", network.hcas, f"{GUESSED}: those with an active port", depth=1)
    for one in main.topology.gpus:
        if one.nics and (names := nearest_nics(one)):
            yield remark(f"nearest to GPU {one.gpu}: {', '.join(names)}", depth=1)
    if main.gpus and main.gpus[0].vendor == "amd":
        yield line("gpus", "amd", depth=1)


def around_lines(cluster: Cluster, main: Hardware | None) -> Iterator[str]:
    """Yield containers, modules, storage, internet access and requeue."""
    software = main.software if main else Software()
    runtime = _runtime(software)
    if runtime:
        yield "containers:"
        yield line("runtime", runtime, GUESSED, depth=1)
    elif main is None:
        yield question(
            "containers", "{runtime: apptainer}", "which container runtime is on the nodes?"
        )
    system = f" ({software.modules})" if software.modules else ""
    yield question("modules", "[cuda/12.4]", f"which modules does a job need?{system}")
    yield from _storage(main)
    if main is not None and main.reached is not None:
        yield "internet:"
        yield line("access", "yes" if main.reached else "no", "as found by the probe job", depth=1)
    else:
        yield question("internet", '{access: "no"}', "do compute nodes have internet access?")
    if cluster.limits.requeue is not None:
        yield "lifecycle:"
        yield line("requeue", cluster.limits.requeue, "JobRequeue", depth=1)


def _runtime(software: Software) -> str:
    if software.pyxis:
        return "pyxis"
    known = ("apptainer", "singularity", "podman-hpc", "shifter")
    return next((name for name in known if name in software.programs), "")


def _storage(main: Hardware | None) -> Iterator[str]:
    disks = main.disks if main else ()
    if not disks:
        yield question("storage", "{scratch: {path: $SCRATCH}}", "which file systems can jobs use?")
        return
    yield "storage:"
    for number, disk in enumerate(disks):
        yield f"  node_local{number or ''}:"
        size = f"{GUESSED}: {disk.kind}, {disk.size_mib // 1024} GiB"
        yield line("path", disk.path, size, depth=2)
        yield line("node_local", True, depth=2)
