"""Runs of one point on different numbers of switches or blocks are named; others are not."""

from __future__ import annotations

import pytest

from hpc_train.model.expected_study import ExpectedRun, undeclared
from hpc_train.model.plan import Topology
from hpc_train.model.report import Report
from hpc_train.model.switch_topology import RunSwitches, SwitchKind
from hpc_train.reports.switch_caveats import with_switch_caveats

EMPTY = Report(title="t", summary=("first",), tables=(), notes=())


def run(name: str, nodes: int = 2) -> ExpectedRun:
    size = Topology(nodes=nodes, tasks_per_node=1, gpus_per_node=0, cpus_per_task=1)
    return ExpectedRun(
        run_id=name, axes={"nodes": nodes}, repetition=1, topology=size, state="COMPLETED"
    )


def place(leaves: int, hops: int | None = None, kind: SwitchKind = "tree") -> RunSwitches:
    return RunSwitches(job="1", kind=kind, leaves=leaves, hops=hops)


def summary(runs: list[ExpectedRun], switches: dict[str, RunSwitches]) -> tuple[str, ...]:
    return with_switch_caveats(EMPTY, undeclared("s", runs), switches).summary


def test_runs_of_a_point_that_differ() -> None:
    found = summary(
        [run("a"), run("b"), run("c")], {"a": place(1, 1), "b": place(2, 3), "c": place(1, 1)}
    )
    assert found[0].startswith("Caveats: runs of one point have nodes on different numbers")
    assert found[0].endswith(": a, c on 1 leaf switch (1 hop), b on 2 leaf switches (3 hops).")
    assert found[1:] == ("first",)


def test_as_many_switches_at_other_distances_differ() -> None:
    found = summary([run("a"), run("b")], {"a": place(2, 3), "b": place(2, 5)})
    assert found[0].endswith("a on 2 leaf switches (3 hops), b on 2 leaf switches (5 hops).")


def test_blocks_have_no_hops() -> None:
    switches = {"a": place(1, kind="block"), "b": place(2, kind="block")}
    assert summary([run("a"), run("b")], switches)[0].endswith(": a on 1 block, b on 2 blocks.")


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"a": place(1, 1), "b": place(1, 1)},
        {"a": place(1, 1)},
        {"a": place(1, 1), "large": place(2, 3)},
    ],
)
def test_points_whose_runs_do_not_differ(switches: dict[str, RunSwitches]) -> None:
    assert summary([run("a"), run("b"), run("large", nodes=4)], switches) == ("first",)
