"""SwitchTopology: how Slurm groups the nodes of a cluster, by switches or by blocks."""

import re
from collections.abc import Sequence
from typing import Literal

from hpc_train.base.node_names import node_names
from hpc_train.base.value import Value

SwitchKind = Literal["tree", "block"]
_SWITCH = re.compile(r"\ASwitchName=(\S{1,200}) +Level=([0-9]{1,3}) (.*)\Z")
_BLOCK = re.compile(r"\ABlockName=(\S{1,200}) (.*)\Z")
_NODES = re.compile(r"(?:\A| )Nodes=(\S{1,100000})")


class NodeGroup(Value, frozen=True, kw_only=True):
    """A switch with all nodes below it, or a block; `level` 0 has the nodes themselves."""

    name: str
    level: int
    nodes: tuple[str, ...]


class SwitchTopology(Value, frozen=True, kw_only=True):
    """The groups that `scontrol show topology` prints."""

    kind: SwitchKind
    groups: tuple[NodeGroup, ...]

    @classmethod
    def parse(cls, text: str) -> "SwitchTopology | None":
        """Parse the output of `scontrol show topology`; None if it names no switch or block."""
        found: dict[SwitchKind, list[NodeGroup]] = {"tree": [], "block": []}
        for line in map(str.strip, text.splitlines()):
            if match := _SWITCH.match(line):
                found["tree"].append(_group(match[1], int(match[2]), match[3]))
            elif match := _BLOCK.match(line):
                found["block"].append(_group(match[1], 0, match[2]))
        for kind, groups in found.items():
            if groups:
                return cls(kind=kind, groups=tuple(groups))
        return None

    @property
    def leaves(self) -> tuple[NodeGroup, ...]:
        """Return the switches that have nodes themselves, or the blocks."""
        return tuple(group for group in self.groups if group.level == 0 and group.nodes)

    @property
    def most_nodes(self) -> int:
        """Return the nodes of the largest leaf switch or block."""
        return max((len(group.nodes) for group in self.leaves), default=0)

    @property
    def summary(self) -> str:
        """Return `2 leaf switches of 16 to 18 nodes`."""
        sizes = [len(group.nodes) for group in self.leaves]
        if not sizes:
            return "no leaf switch has nodes"
        few, many = min(sizes), max(sizes)
        nodes = f"{few} nodes" if few == many else f"{few} to {many} nodes"
        word = "leaf switch" if self.kind == "tree" else "block"
        plural = "es" if self.kind == "tree" else "s"
        return f"{len(sizes)} {word}{plural if len(sizes) > 1 else ''} of {nodes}"

    def most_of(self, nodes: Sequence[str]) -> int:
        """Return how many of these nodes are below one leaf switch, or in one block, at most."""
        wanted = set(nodes)
        return max((len(wanted & set(group.nodes)) for group in self.leaves), default=0)


def _group(name: str, level: int, rest: str) -> NodeGroup:
    match = _NODES.search(rest)
    return NodeGroup(name=name, level=level, nodes=node_names(match[1]) if match else ())
