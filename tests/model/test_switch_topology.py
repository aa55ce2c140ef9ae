"""The output of `scontrol show topology` -> switches or blocks, and the ways between nodes.

Forms of the lines: trees of a real slurmctld 22.05; blocks of Slurm 24.05, src/api/topo_info.c.
"""

from __future__ import annotations

import pytest

from hpc_train.model.switch_topology import SwitchTopology

TREE = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[01-02]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[03-05]
SwitchName=leaf3 Level=0 LinkSpeed=1 Nodes=n[06-07]
SwitchName=middle Level=1 LinkSpeed=1 Nodes=n[01-05] Switches=leaf[1-2]
SwitchName=spine Level=2 LinkSpeed=1 Nodes=n[01-07] Switches=middle,leaf3
"""
BLOCKS = """\
BlockName=b1 BlockIndex=0 Nodes=g[1-18] BlockSize=18
BlockName=b2 BlockIndex=1 Nodes=g[19-35] BlockSize=18
"""


def parsed(text: str) -> SwitchTopology:
    found = SwitchTopology.parse(text)
    assert found is not None
    return found


def test_blocks() -> None:
    blocks = parsed(BLOCKS)
    assert blocks.kind == "block"
    assert (blocks.most_nodes, blocks.summary) == (18, "2 blocks of 17 to 18 nodes")


def test_a_summary_counts_leaves() -> None:
    assert (parsed(TREE).most_nodes, parsed(TREE).summary) == (3, "3 leaf switches of 2 to 3 nodes")


@pytest.mark.parametrize(
    "text", ["", "No topology information available", "SwitchName=", "SwitchName=s Level=x Nodes=n"]
)
def test_a_cluster_without_a_topology(text: str) -> None:
    assert SwitchTopology.parse(text) is None
