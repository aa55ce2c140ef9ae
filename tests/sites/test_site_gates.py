"""The gates of the runs' site, or why they are not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.jobs.study import Gates
from hpc_train.reports.build import site_gates
from hpc_train.runs.run import PROFILE, Run
from hpc_train.sites.search import find_profile
from tests.submissions.runs_of import run


@pytest.fixture
def at(tmp_path: Path) -> dict[str, Run]:
    """Return runs of three sites: two with the same gates, and one with others."""
    text, runs = find_profile("local").read_text(), {}
    for name, gate in (("a", 0.5), ("b", 0.5), ("c", 0.9)):
        path = tmp_path / f"{name}.yaml"
        said = f"{{gates: {{efficiency: {gate}}}}}"
        path.write_text(f"{text.replace('name: local', f'name: {name}')}report: {said}\n")
        runs[name] = run(name, provenance={PROFILE: str(path)})
    return runs


def test_the_gates_of_sites_are_known_if_they_are_equal(at: dict[str, Run]) -> None:
    assert site_gates([at["a"], at["b"]]) == (Gates(efficiency=0.5), "")
    assert site_gates([]) == (Gates(), "")
    gates, unknown = site_gates([at["a"], at["c"]])
    assert gates == Gates()
    assert unknown.startswith("the runs are from several sites with different gates: ")
