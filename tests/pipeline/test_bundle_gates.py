"""A bundle says what was said where it was packed."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from hpc_train.model.log_selection import Search
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.write_bundle import write_bundle
from hpc_train.reports.gate_table_and_sentences import verdicts_of
from hpc_train.sites.search import find_profile
from tests.pipeline.runs_of import written
from tests.pipeline.test_write_bundle import ASKED, STEPS, found, members, packed


def test_gates_of_the_site_and_the_reference_travel_along(tmp_path: Path) -> None:
    """The reviewer has neither the profile nor the study that this one must not be slower than."""
    home, text = tmp_path / "job", find_profile("local").read_text()
    profile = tmp_path / "local.yaml"
    profile.write_text(f"{text}report: {{gates: {{node_counts: 3}}, price_per_gpu_hour: 2.5}}\n")
    for run in "abc":
        written(home, run, STEPS)
        manifest = home / run / "run.json"
        manifest.write_text(manifest.read_text().replace("/sites/lab.yaml", str(profile)))
    shutil.copytree(home, tmp_path / "old")
    asked = msgspec.structs.replace(
        ASKED, against=str(tmp_path / "old"), search=Search(root=Path("none"))
    )
    here, path = found(home), tmp_path / "gated.tar.zst"
    before = build_report(here, asked)
    assert {v.gate for v in verdicts_of(before)} == {
        "node_counts", "regression", "plausible", "missing",
    }  # fmt: skip
    write_bundle(here, before, asked, path)
    for gone in (home, tmp_path / "old"):
        shutil.rmtree(gone)
    profile.write_text(f"{text}report: {{gates: {{efficiency: 0.9}}}}\n")
    opened = found(path)
    after = build_report(opened, ASKED)
    assert verdicts_of(after) == verdicts_of(before)
    assert after.checks == before.checks
    again = tmp_path / "again.tar.zst"
    write_bundle(opened, after, ASKED, again)
    assert members(again)["evidence.json"] == members(path)["evidence.json"]


def test_caveats_of_the_reference_travel_along(tmp_path: Path) -> None:
    new, old = tmp_path / "new.csv", tmp_path / "old.csv"
    head = "nodes,gpus_per_node,samples_per_second\n"
    new.write_text(f"{head}1,4,100\n2,4,190\n")
    old.write_text(f"{head}1,4,100\n2,4,900\n")
    asked = msgspec.structs.replace(ASKED, against=str(old), search=Search(root=Path("none")))
    here, path = found(new), tmp_path / "with.tar.zst"
    before = build_report(here, asked)
    assert before.summary[0].startswith(f"Caveats: reference {old}: implausible efficiency (450 %")
    write_bundle(here, before, asked, path)
    old.unlink()
    after = build_report(found(path), ASKED)
    assert (after.summary, after.checks) == (before.summary, before.checks)


def test_a_table_of_any_name_can_be_opened_again(tmp_path: Path) -> None:
    table = tmp_path / ("a\\b" + "c" * 200 + ".csv")
    table.write_text("nodes,samples_per_second\n1,100\n1,101\n")
    opened = found(packed(table, tmp_path / "out.tar.zst"))
    assert len(opened.study.runs) == 2


def test_the_transports_of_logs_without_a_run_folder_travel_along(tmp_path: Path) -> None:
    log, path = tmp_path / "a.log", tmp_path / "out.tar.zst"
    log.write_text(f"n1:10:11 [0] NCCL INFO NCCL version 2.27.5+cuda12.8\n{STEPS}")
    here = found(log)
    assert here.transports
    write_bundle(here, build_report(here, ASKED), ASKED, path)
    assert found(path).transports == here.transports
