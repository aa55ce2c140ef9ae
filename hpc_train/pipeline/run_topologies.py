"""Runs -> the topology of each of their nodes, as the job stored it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.model.node_topology import NodeTopology
from hpc_train.model.run import Run, RunFolder
from hpc_train.regularfile import read_regular
from hpc_train.runs.node_list import nodes_of

# What the tools print of a node with sixteen GPUs is a tenth of it.
_MOST_BYTES = 1 << 20
Topologies = Mapping[str, tuple[NodeTopology, ...]]


def run_topologies(runs: Sequence[Run]) -> Topologies:
    """Return the topologies of the nodes of each run that stored any, by the name of the run.

    After a restart on other nodes, those of its earlier nodes are left out.
    """
    found = {run.folder.run_id: tuple(_of_run(run)) for run in runs}
    return {name: nodes for name, nodes in found.items() if nodes}


def stored_topologies(folder: RunFolder) -> list[Path]:
    """Return the files of the nodes of a run, by name; none of a folder that may not be read."""
    with suppress(OSError):
        return sorted(path for path in folder.topology.iterdir() if path.suffix == ".txt")
    return []


def _of_run(run: Run) -> Iterator[NodeTopology]:
    stored = stored_topologies(run.folder)
    own = {_short(name) for name in nodes_of(run)} if stored else set()
    here = [path for path in stored if _short(path.stem) in own]
    for path in here or stored:
        # What cannot be read is not known.
        with suppress(OSError):
            yield _of_file(path)


def _of_file(path: Path) -> NodeTopology:
    # Most reports have no such file to parse.
    from hpc_train.probe.hardware import read_hardware
    from hpc_train.probe.run_program import printable

    text = read_regular(path, _MOST_BYTES).decode(errors="replace")
    return msgspec.structs.replace(read_hardware(text, ()).topology, host=printable(path.stem))


def _short(name: str) -> str:
    return name.partition(".")[0]
