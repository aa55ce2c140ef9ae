"""docs/schedulers.md names every scheduler, what it lacks, and what is done instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.model.batch_system import ABILITIES
from hpc_train.registry import BUILT_IN, find_batch_system

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "schedulers.md").read_text(encoding="utf-8")
TITLES = {"local": "This machine", "hosts": "Hosts", "pbs": "PBS", "sagemaker": "SageMaker"}


def rows(text: str) -> dict[str, str]:
    """Return the rows of the first table of two columns, without its head."""
    found = dict(re.findall(r"^\| (.+?) \| (.+) \|$", text.partition("|---|---|\n")[2], re.M))
    return {name.strip("`"): value for name, value in found.items()}


def test_every_scheduler_has_a_row_and_a_column() -> None:
    named = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## What each")[0], re.M)
    assert named[1:] == list(BUILT_IN["executors"])
    (head,) = re.findall(r"^\| command \| (.+) \|$", PAGE, re.M)
    assert head.split(" | ") == [f"`{name}`" for name in named[1:]]


def test_every_ability_is_explained() -> None:
    table = PAGE.partition("## What is done instead")[2].partition("###")[0]
    assert rows(table) == ABILITIES


@pytest.mark.parametrize("name", BUILT_IN["batch_systems"])
def test_what_is_done_instead_is_in_the_table(name: str) -> None:
    instead = find_batch_system(name).instead
    if not instead:
        assert name == "slurm"
        return
    table = PAGE.partition(f"### {TITLES[name]}\n")[2].partition("###")[0]
    assert rows(table) == instead
    # In one order, so that two tables can be compared.
    assert list(instead) == [one for one in ABILITIES if one in instead]
