from __future__ import annotations

from hpc_train.model.study import Gates
from hpc_train.pipeline.asked import Asked
from hpc_train.pipeline.gates import governed, resolved
from tests.tables.studies import study


def test_the_study_wins_over_its_site_and_a_rule_stands_behind_its_own_layer() -> None:
    csc = resolved(Gates(efficiency=0.8), Gates(rule="csc", efficiency=0.7, busbw=100.0))
    assert (csc.efficiency, csc.doubling, csc.node_counts, csc.script) == (0.8, 1.5, 3, True)
    assert csc.busbw == 100
    assert resolved(Gates(rule="csc"), Gates(efficiency=0.7)).efficiency == 0.75
    assert resolved(Gates(missing=False), Gates(missing=True)).missing is False
    assert resolved(Gates(), Gates()) == Gates()


def test_the_command_line_names_what_to_be_no_slower_than() -> None:
    found = governed(study([]), (), Asked(against="old")).gates.regression
    assert found is not None
    assert (found.against, found.tolerance) == ("old", 0.05)
    assert governed(study([], efficiency=0.5), (), Asked()).gates == Gates(efficiency=0.5)
