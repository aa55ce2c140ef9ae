from __future__ import annotations

from pathlib import Path

import msgspec

from hpc_train.model.run import Run
from hpc_train.model.study import Gates
from hpc_train.pipeline.asked import Asked
from hpc_train.pipeline.evidence import Evidence
from hpc_train.pipeline.gates import governed, resolved
from hpc_train.pipeline.query import runs_below
from hpc_train.sites.search import find_profile
from tests.tables.studies import study

STUDY = Path(__file__).parents[2] / "results/studies/digits-two-cores"


def test_the_study_wins_over_its_site_and_a_rule_stands_behind_its_own_layer() -> None:
    csc = resolved(Gates(efficiency=0.8), Gates(rule="csc", efficiency=0.7, busbw=100.0))
    assert (csc.efficiency, csc.doubling, csc.node_counts, csc.script) == (0.8, 1.5, 3, True)
    assert csc.busbw == 100
    assert resolved(Gates(rule="csc"), Gates(efficiency=0.7)).efficiency == 0.75
    assert resolved(Gates(missing=False), Gates(missing=True)).missing is False
    assert resolved(Gates(), Gates()) == Gates()


def test_the_command_line_names_what_to_be_no_slower_than() -> None:
    found = governed(Evidence(study=study([]), records=()), Asked(against="old")).gates.regression
    assert found is not None
    assert (found.against, found.tolerance) == ("old", 0.05)
    said = Evidence(study=study([], efficiency=0.5), records=())
    assert governed(said, Asked()).gates == Gates(efficiency=0.5)


def with_profile(run: Run, file: Path) -> Run:
    assert run.manifest is not None
    facts = {**run.manifest.provenance, "profile": str(file)}
    return msgspec.structs.replace(
        run, manifest=msgspec.structs.replace(run.manifest, provenance=facts)
    )


def test_the_site_has_gates_and_a_price_unless_the_runs_are_of_two(tmp_path: Path) -> None:
    text = find_profile("local").read_text()
    said = "report: {gates: {efficiency: 0.7}, price_per_gpu_hour: 2.5, currency: EUR}\n"
    (tmp_path / "local.yaml").write_text(text + said)
    runs = runs_below(STUDY)[:2]
    own = [with_profile(run, tmp_path / "local.yaml") for run in runs]
    of_site = Evidence(study=study([]), records=(), own=tuple(own))
    found = governed(of_site, Asked())
    assert (found.gates.efficiency, found.price_per_gpu_hour, found.currency) == (0.7, 2.5, "EUR")
    stricter = msgspec.structs.replace(of_site, study=study([], efficiency=0.9))
    assert governed(stricter, Asked()).gates.efficiency == 0.9
    mixed = (own[0], with_profile(runs[1], tmp_path / "other.yaml"))
    of_two = msgspec.structs.replace(of_site, own=mixed)
    assert governed(of_two, Asked()).price_per_gpu_hour is None
