"""Node lists of Slurm as names, and the nodes of a run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpc_train.model.node_names import node_names
from hpc_train.pipeline.run_states import runs_below
from hpc_train.runs.node_list import nodes_of

STUDY = Path(__file__).parents[2] / "results/studies/digits-two-cores"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lab1", ("lab1",)),
        ("lab1,lab2", ("lab1", "lab2")),
        ("n[08-10,12],gpu-7", ("n08", "n09", "n10", "n12", "gpu-7")),
        ("r[1-2]c[3,5]", ("r1c3", "r1c5", "r2c3", "r2c5")),
        ("a[1-2]-ib.site.org", ("a1-ib.site.org", "a2-ib.site.org")),
        ("n1,n1", ("n1",)),
        *((text, ()) for text in ("", "n[1-", "n[2-1]", "n[a-b]", "n1 n2", "n[1,,2]", "n1,")),
        ("n[0-999999999]", ()),
        ("n[0-999][0-999]", ()),
    ],
)
def test_a_node_list_is_names(text: str, names: tuple[str, ...]) -> None:
    assert node_names(text) == names


def test_the_nodes_of_a_run_are_known_if_their_number_is_that_of_the_run() -> None:
    run = runs_below(STUDY)[0]
    assert run.status is not None
    for text, names in (("lab7", ("lab7",)), ("lab1,lab2", ()), ("lab[1-4]", ())):
        status = msgspec.structs.replace(run.status, nodes=text)
        assert nodes_of(msgspec.structs.replace(run, status=status)) == names
    assert nodes_of(msgspec.structs.replace(run, manifest=None)) == ()
    assert nodes_of(None) == ()
