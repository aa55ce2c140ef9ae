"""A history: what is stored of a study, and what is said of it later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.errors import HpcTrainError, ReportError, UnknownNameError
from hpc_train.model.log_selection import Search
from hpc_train.model.report_options import ReportOptions
from hpc_train.model.track import TrackEntry
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.track_add import Stated, add, entry_of_input
from hpc_train.pipeline.track_show import ShownHistory, TrackDemands, show
from hpc_train.pipeline.write_bundle import bundle_options, write_bundle
from hpc_train.pipeline.write_report import render_report
from hpc_train.runs.track_files import store
from tests.tables.histories import entry, history, point, sized

ROOT = Path(__file__).resolve().parents[2]
STUDY = str(ROOT / "results" / "studies" / "digits-two-cores")
SEARCH = Search(root=Path("results"))
PLAIN = ReportOptions()


def report_of(study: str) -> dict[str, Any]:
    built = build_report(report_inputs([study], SEARCH))
    found: dict[str, Any] = json.loads(render_report(built, "json"))
    return found


def written(folder: Path, content: dict[str, Any]) -> str:
    path = folder / "report.json"
    path.write_text(json.dumps(content))
    return str(path)


def fill(folder: Path, entries: list[TrackEntry]) -> Path:
    for one in entries:
        store(folder, one)
    return folder


def shown(folder: Path, **demands: Any) -> ShownHistory:
    return show(folder, TrackDemands(**demands), PLAIN)


def test_an_entry_has_the_points_and_the_start_of_the_study() -> None:
    found = entry_of_input(STUDY, SEARCH)
    assert (found.site, found.study) == ("local", "digits-strong")
    assert found.started == "2026-11-21T20:45:54Z"
    assert found.conditions["torch"] == ("2.13.0",)
    assert found.conditions["nodes"] == ("vm",)
    assert "started" not in found.conditions
    rows = report_of(STUDY)["rows"]
    assert len(found.points) == len(rows)
    for one, row in zip(found.points, rows, strict=True):
        assert (one.n_ok, one.n_submitted) == (3, 3)
        assert one.work["parser"] == "events"
        assert one.work["global_batch"] == "128"
        value = one.values["throughput"]
        expected = row["throughput"]
        assert [value.value, value.low, value.high] == pytest.approx(list(expected.values()))
        assert ("efficiency" in one.values) != row["is_baseline"]


def test_study_report_and_bundle_are_one_entry(tmp_path: Path) -> None:
    inputs = report_inputs([STUDY], SEARCH)
    options = bundle_options(PLAIN)
    bundle = tmp_path / "study.tar.zst"
    write_bundle(inputs, build_report(inputs, options), options, bundle)
    words = [STUDY, written(tmp_path, report_of(STUDY)), str(bundle)]
    found = [add(word, tmp_path / "history", SEARCH) for word in words]
    assert [one.is_new for one in found] == [True, False, False]
    assert len({one.path for one in found}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partial": True}, "some runs are not finished"),
        ({"rows": []}, "no points"),
        ({"rows": [1]}, "not a report of hpctrain"),
        ({"rows": [{"series": "x"}]}, "a point has no 'basis'"),
        ({"schema": 2}, "written by a newer hpctrain"),
        ({"differences": []}, "comparison"),
        ({"name": ""}, "does not name its study"),
        ({"provenance": {}}, "its site is not recorded"),
        ({"provenance": {"site": [{"value": "a"}, {"value": "b"}]}}, "several sites"),
        ({"provenance": {"site": [{"value": "a"}]}}, "the start of its runs is not recorded"),
    ],
)
def test_a_report_that_is_no_entry_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    word = written(tmp_path, report_of(STUDY) | change)
    with pytest.raises(HpcTrainError, match=message):
        add(word, tmp_path / "history", SEARCH)
    assert not (tmp_path / "history").exists()


def test_site_and_start_can_be_stated(tmp_path: Path) -> None:
    word = written(tmp_path, report_of(STUDY) | {"provenance": {}})
    for text in ("2026-11-21T21:45:54+01:00", "2026-11-21 20:45:54", "2026-11-21T20:45:54Z"):
        found = entry_of_input(word, SEARCH, Stated(site="marvin", study="gpt", started=text))
        assert (found.site, found.study) == ("marvin", "gpt")
        assert found.started == "2026-11-21T20:45:54Z"
    with pytest.raises(ReportError, match=r"--started 'yesterday': not a time"):
        entry_of_input(word, SEARCH, Stated(site="marvin", started="yesterday"))


def test_a_worse_level_is_a_check_with_the_condition_that_changed(tmp_path: Path) -> None:
    days = [entry(d, point(100.0 + d % 3), driver="580", nodes=f"n{d}") for d in range(10)]
    days += [entry(10 + d, point(90.0 + d % 3), driver="590", nodes=f"n{d + 20}") for d in range(5)]
    found = shown(fill(tmp_path, days))
    (check,) = found.report.checks
    assert check.startswith("worse: 4 GPUs: speed 0.9")
    assert "since 2026-01-11 03:00 (5 values; before: 10)" in check
    (change,) = next(table for table in found.report.tables if table.key == "changes").records
    assert change["changed"] == [
        "driver: 580 → 590",
        "nodes: n0 / n1 / n2 / … → n20 / n21 / n22 / …",
    ]
    assert found.undecided == ()


def test_a_condition_that_changed_an_entry_earlier_is_named_so(tmp_path: Path) -> None:
    speeds = [100.0 + d % 3 for d in range(10)] + [90.0 + d % 3 for d in range(5)]
    days = [entry(d, point(v), driver="580" if d < 9 else "590") for d, v in enumerate(speeds)]
    found = shown(fill(tmp_path, days))
    (change,) = next(table for table in found.report.tables if table.key == "changes").records
    assert change["changed"] == ["driver: 580 → 590 (one entry earlier)"]


@pytest.mark.parametrize(("threshold", "worse"), [(0.02, True), (0.05, True), (0.2, False)])
def test_a_loss_within_the_threshold_is_no_check(
    tmp_path: Path, threshold: float, worse: bool
) -> None:
    folder = fill(tmp_path, history([100.0] * 15 + [93.0] * 5, noise=0.01))
    found = shown(folder, threshold=threshold)
    assert bool(found.report.checks) is worse
    levels = found.report.tables[0].records
    assert levels[0]["step"]["value"] == pytest.approx(0.93, abs=0.02)


def test_a_level_that_recovered_is_no_check(tmp_path: Path) -> None:
    found = shown(fill(tmp_path, history([100.0] * 10 + [80.0] * 5 + [100.0] * 5)))
    assert found.report.checks == ()
    assert found.report.tables[0].records[0]["step"]["value"] > 1.2


def test_a_point_without_a_result_is_a_check(tmp_path: Path) -> None:
    found = shown(fill(tmp_path, [*history([100.0] * 6), entry(6, point(0.0))]))
    assert found.report.checks == ("worse: 4 GPUs: no result in the newest entry: 2 FAILED",)


def test_a_point_that_is_not_measured_any_more_is_not_decided(tmp_path: Path) -> None:
    days = history([100.0] * 6)
    found = shown(fill(tmp_path, [*days, entry(6, point(190.0, nodes=2))]))
    assert found.report.checks == ()
    assert any("4 GPUs: not in the newest entry" in line for line in found.undecided)


def test_one_entry_is_shown_and_decides_nothing(tmp_path: Path) -> None:
    found = shown(fill(tmp_path, history([100.0])))
    assert found.report.checks == ()
    assert found.undecided == ("not decided: 4 GPUs: 1 value, a change needs 5",)


def test_two_entries_of_one_study_and_start_count_once(tmp_path: Path) -> None:
    """The study was added before and after a retry: the entry with more results counts."""
    days = history([100.0] * 6)
    folder = fill(tmp_path, [*days, entry(2, point(0.0))])
    found = shown(folder)
    assert found.report.tables[0].records[0]["values"] == 6
    (note,) = [line for line in found.report.notes if line.startswith("not used: ")]
    assert "the same study and start" in note
    assert any("Caveats: not used" in line for line in found.report.summary)


def test_sites_and_studies_are_selected_by_name(tmp_path: Path) -> None:
    days = [*history([100.0] * 3), entry(9, point(5.0), study="vit")]
    folder = fill(tmp_path, days)
    assert shown(folder, word="vit").report.title == "History of vit on marvin"
    assert shown(folder).report.title == "History of 2 studies on marvin"
    assert len(shown(folder, word="marvin").report.tables[0].records) == 2
    with pytest.raises(UnknownNameError, match=r"unknown site or study 'vitt'; did you mean 'vit'"):
        shown(folder, word="vitt")


def test_since_forgets_a_level_that_was_accepted(tmp_path: Path) -> None:
    folder = fill(tmp_path, history([100.0] * 10 + [80.0] * 6))
    assert shown(folder).report.checks
    assert shown(folder, since="2026-01-11").report.checks == ()
    with pytest.raises(ReportError, match="no entry since 2027"):
        shown(folder, since="2027-01-01")
    with pytest.raises(ReportError, match="--since 'May': not a time"):
        shown(folder, since="May")


def test_damage_is_reported_and_the_rest_is_shown(tmp_path: Path) -> None:
    folder = fill(tmp_path, history([100.0] * 6))
    path = next(folder.rglob("2026-01-03*.json"))
    path.write_text("<<<<<<< HEAD\n")
    found = shown(folder)
    assert found.damaged == (f"{path}:1: a conflict of git that is not resolved",)
    assert found.report.tables[0].records[0]["values"] == 5
    assert any(str(path) in line for line in found.report.notes)


def test_equal_entries_are_not_called_worse_and_a_step_is_seen(tmp_path: Path) -> None:
    """The check after each entry of a history, as cron runs it."""
    worse = 0
    for seed in range(40):
        days = history([100.0] * 50, seed=seed)
        folder = fill(tmp_path / str(seed), days)
        worse += bool(shown(folder).report.checks)
    assert worse / 40 <= 0.05
    levels = [100.0] * 30 + [95.0] * 3
    for count, checks in ((30, False), (33, True)):
        folder = fill(tmp_path / f"step{count}", sized(levels, 4)[:count])
        found = shown(folder).report.checks
        assert bool(found) is checks
        assert all(line.startswith("worse: all 4 sizes: speed 0.9") for line in found[:1])
