"""The links that a collective over all GPUs of each size of advice crosses."""

from __future__ import annotations

from msgspec.structs import replace

from hpc_train.model.machine_size import MachineSize
from hpc_train.reports.advice_report import crossed_links_tables, switch_notes

# JUWELS Booster: four A100 with NVLink3, four adapters of 200 Gbit/s.
NODE = MachineSize(
    site="s", partition="p", gpus_per_node=4, gpu="A100", gpu_link=300.0, node_link=100.0
)


def rows(ranks: list[int], machine: MachineSize) -> list[list[str]]:
    return [
        [cell.text for cell in row]
        for table in crossed_links_tables(ranks, machine)
        for row in table.rows
    ]


def test_a_node_and_several() -> None:
    assert rows([8, 1, 2, 4, 4, 16], NODE) == [
        ["2 to 4", "from GPU to GPU in a node", "300", "each A100"],
        ["8 to 16", "the adapters between nodes", "25.0", "100 of a node, for 4 GPUs"],
    ]


def test_the_switches_of_a_tree() -> None:
    tree = replace(NODE, nodes_per_switch=2)
    assert [row[:2] for row in rows([4, 8, 16], tree)] == [
        ["4", "from GPU to GPU in a node"],
        ["8", "the adapters between nodes, within one leaf switch"],
        ["16", "the adapters between nodes, and more than one leaf switch"],
    ]
    few, many = switch_notes([4, 8, 16, 20], tree)
    assert "{switches: 1@10:00} waits up to ten minutes for one, on up to 2 nodes" in few
    assert many.endswith("at least: 2 for 4 nodes, 3 for 5 nodes.")
    assert list(switch_notes([2, 4], tree)) == list(switch_notes([8], NODE)) == []


def test_segments_of_blocks_divide_the_nodes() -> None:
    blocks = replace(NODE, nodes_per_block=18)
    (note,) = switch_notes([16, 128], blocks)
    assert note.endswith("{segment: 4} of 4 nodes, {segment: 16} of 32 nodes.")
    assert rows([128], blocks)[0][1] == "the adapters between nodes, and more than one block"
    unknown = replace(blocks, node_link=None)
    assert rows([128], unknown)[0][3].startswith("not known: state nics_per_node")
