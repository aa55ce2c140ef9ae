from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpc_train.model.report_options import ReportOptions
from hpc_train.model.run import Run
from hpc_train.model.study import Gates
from hpc_train.pipeline.report import build_report, merged_gates, unreadable_gates, with_site_gates
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.pipeline.run_states import runs_below
from hpc_train.reports.gate_table_and_sentences import verdicts_of
from hpc_train.sites.search import find_profile
from hpc_train.tables.record_arrays import record_arrays
from tests.tables.studies import study

STUDY = Path(__file__).parents[2] / "results/studies/digits-two-cores"


def test_the_study_wins_over_its_site_and_a_rule_stands_behind_its_own_layer() -> None:
    csc = merged_gates(Gates(efficiency=0.8), Gates(rule="csc", efficiency=0.7, busbw=100.0))
    assert (csc.efficiency, csc.doubling, csc.node_counts, csc.script) == (0.8, 1.5, 3, True)
    assert csc.busbw == 100
    assert merged_gates(Gates(rule="csc"), Gates(efficiency=0.7)).efficiency == 0.75
    assert merged_gates(Gates(missing=False), Gates(missing=True)).missing is False
    assert merged_gates(Gates(), Gates()) == Gates()


def test_the_command_line_names_what_to_be_no_slower_than() -> None:
    found = with_site_gates(
        ReportInputs(study=study([]), records=record_arrays([])), ReportOptions(against="old")
    ).gates.regression
    assert found is not None
    assert (found.against, found.tolerance) == ("old", 0.05)
    said = ReportInputs(study=study([], efficiency=0.5), records=record_arrays([]))
    assert with_site_gates(said, ReportOptions()).gates == Gates(efficiency=0.5)


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
    of_site = ReportInputs(study=study([]), records=record_arrays([]), own=tuple(own))
    found = with_site_gates(of_site, ReportOptions())
    assert (found.gates.efficiency, found.price_per_gpu_hour, found.currency) == (0.7, 2.5, "EUR")
    stricter = msgspec.structs.replace(of_site, study=study([], efficiency=0.9))
    assert with_site_gates(stricter, ReportOptions()).gates.efficiency == 0.9
    mixed = (own[0], with_profile(runs[1], tmp_path / "other.yaml"))
    of_two = msgspec.structs.replace(of_site, own=mixed)
    assert with_site_gates(of_two, ReportOptions()).price_per_gpu_hour is None


def of_site(tmp_path: Path, *texts: str | None) -> ReportInputs:
    """Return two runs on profiles of their own; None: it is gone, and its name unknown."""
    own = []
    for number, (run, text) in enumerate(zip(runs_below(STUDY), texts, strict=False)):
        file = tmp_path / str(number) / "lab7.yaml"
        file.parent.mkdir()
        if text is not None:
            file.write_text(find_profile("local").read_text().replace("name: local", text))
        named = with_profile(run, file)
        assert named.manifest is not None
        plan = msgspec.structs.replace(named.manifest.plan, site="lab7")
        manifest = msgspec.structs.replace(named.manifest, plan=plan)
        own.append(msgspec.structs.replace(named, manifest=manifest))
    return ReportInputs(study=study([]), records=record_arrays([]), own=tuple(own))


STRICT = "name: lab7\nreport: {gates: {efficiency: 0.7}}"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([None], "there is no profile lab7 on the search path"),
        (["name: lab7\nreport: {gates: {efficiency: high}}"], "report.gates.efficiency"),
        (["name: lab7\n- broken"], "not valid YAML"),
        ([STRICT, "name: lab7"], "several sites with different gates"),
        ([STRICT, None], "there is no profile lab7 on the search path"),
    ],
)
def test_gates_of_a_site_that_are_not_known_are_not_met(
    texts: list[str | None], said: str, tmp_path: Path
) -> None:
    found = of_site(tmp_path, *texts)
    assert said in with_site_gates(found, ReportOptions()).site_unknown
    report = build_report(found)
    assert any(said in line for line in report.checks)
    assert any(said in note and "are not known" in note for note in report.notes)
    (decided,) = (v for v in verdicts_of(report) if v.gate == "site")
    assert decided.outcome == "error"
    assert unreadable_gates(report)
    first = report.summary[0]
    assert first.startswith("Caveats: not every gate could be read. Gates checked: ")
    assert said in first


def test_gates_that_are_the_same_on_two_sites_hold(tmp_path: Path) -> None:
    found = with_site_gates(of_site(tmp_path, STRICT, STRICT), ReportOptions())
    assert (found.gates.efficiency, found.site_unknown) == (0.7, "")


def test_runs_of_which_no_manifest_can_be_read_have_no_known_site() -> None:
    run = msgspec.structs.replace(runs_below(STUDY)[0], manifest=None)
    found = ReportInputs(study=study([]), records=record_arrays([]), own=(run,))
    assert "run.json" in with_site_gates(found, ReportOptions()).site_unknown
