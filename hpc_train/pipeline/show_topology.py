"""The topology of this machine, as lines of text, as JSON and as a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpc_train.atomicfile import write_atomic
from hpc_train.errors import SpecError
from hpc_train.json_files import cannot_write
from hpc_train.model.node_topology import NodeTopology
from hpc_train.model.value import Value
from hpc_train.probe.hardware import this_topology
from hpc_train.reports.topology_drawing import topology_svg
from hpc_train.reports.topology_text import topology_lines

_DRAWING = ".svg"


class ShownTopology(Value, frozen=True, kw_only=True):
    """A topology, its lines of text, and what could not be read of the machine."""

    topology: NodeTopology
    lines: tuple[str, ...]
    unread: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the JSON."""
        return {"schema": 1, "topology": self.topology, "unread": self.unread}


def show_topology(drawing: Path | None = None) -> ShownTopology:
    """Read the topology of this machine; with `drawing`, also write it to that file.

    Raises:
        ProbeError: there is no bash.
        SpecError: the name of the file does not end in .svg.
        StoreError: the file cannot be written.
    """
    if drawing is not None and drawing.suffix.lower() != _DRAWING:
        raise SpecError(f"{drawing}: a topology is drawn as SVG: -o NAME{_DRAWING}")
    topology, unread = this_topology()
    if drawing is not None:
        try:
            write_atomic(drawing, topology_svg(topology).encode())
        except OSError as failure:
            raise cannot_write(drawing, failure) from None
    lines = tuple(topology_lines(topology))
    return ShownTopology(topology=topology, lines=lines, unread=unread)
