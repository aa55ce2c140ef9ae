"""Gates and price of the runs' site, or why they are not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.reports.gates_and_price import site_reporting
from hpc_train.runs.run import PROFILE, Run
from hpc_train.sites.search import find_profile
from tests.submissions.runs_of import run


@pytest.fixture
def at(tmp_path: Path) -> dict[str, Run]:
    """Return runs of three sites: two with the same gates, and one with others."""
    text, runs = find_profile("local").read_text(), {}
    for name, gate, price in (("a", 0.5, 2.0), ("b", 0.5, 3.0), ("c", 0.9, 2.0)):
        path = tmp_path / f"{name}.yaml"
        said = f"{{gates: {{efficiency: {gate}}}, price_per_gpu_hour: {price}}}"
        path.write_text(f"{text.replace('name: local', f'name: {name}')}report: {said}\n")
        runs[name] = run(name, provenance={PROFILE: str(path)})
    return runs


def test_runs_of_one_site_have_its_gates_and_its_price(at: dict[str, Run]) -> None:
    said = site_reporting([at["a"], at["a"]]).said
    assert (said.gates.efficiency, said.price_per_gpu_hour) == (0.5, 2.0)


def test_runs_of_several_sites_have_no_price(at: dict[str, Run]) -> None:
    found = site_reporting([at["a"], at["b"]])
    assert (found.said.gates.efficiency, found.said.price_per_gpu_hour) == (0.5, None)
    assert found.unknown == ""


def test_sites_with_different_gates_have_none(at: dict[str, Run]) -> None:
    found = site_reporting([at["a"], at["c"]])
    assert found.unknown.startswith("the runs are from several sites with different gates: ")
    assert found.said.gates.efficiency is None


def test_without_runs_there_is_nothing_to_know() -> None:
    assert site_reporting([]).unknown == ""
