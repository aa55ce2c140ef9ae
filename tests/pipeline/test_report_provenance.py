"""Where and with what runs ran: each value once, with how many runs have it."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.report import Fact
from hpc_train.model.run import Run
from hpc_train.model.transport import Adapter, Transport
from hpc_train.pipeline.report import NOT_RECORDED, Digests, provenance
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.pipeline.run_details import details
from hpc_train.tables.record_arrays import record_arrays
from tests.pipeline.runs_of import run, written
from tests.tables.studies import expected, record, study


def found(runs: list[Run], *records: Record, **more: object) -> ReportInputs:
    wanted: ExpectedStudy = study([expected(one.folder.run_id) for one in runs])
    fields = record_arrays(records)
    return ReportInputs(study=wanted, records=fields, own=tuple(runs), **more)  # type: ignore[arg-type]


def facts(inputs: ReportInputs, digests: Digests | None = None) -> dict[str, tuple[object, ...]]:
    return {fact.name: fact.values for fact in provenance(inputs, digests)}


def _is_missing(fact: Fact) -> bool:
    return fact.name == NOT_RECORDED


def test_equal_values_are_said_once_and_others_counted() -> None:
    other = run("c", {"env": {"NCCL_ALGO": "Ring"}}, script_digest="e" * 64)
    said = facts(found([run("a"), run("b"), other]))
    assert said["commit"] == (("0123456789ab+changes", 3),)
    assert said["script"] == (("d" * 12, 2), ("e" * 12, 1))
    assert said["NCCL_ALGO"] == (("Ring", 1),)
    assert said["jobs"] == (("101", 3),)
    assert said["started"] == (("2001-09-09 01:46:40 UTC", 3),)
    assert said["submitted"] == (("2026-11-01 10:00:00 UTC", 3),)
    assert said["nodes"] == (("n[1-2]", 3),)


def test_the_words_of_the_job_win() -> None:
    own = run("a")
    words = [record("a", "condition", 1, variant=f"gpu={name}") for name in ("H100", "again")]
    said = facts(found([own], *words, record("a", "seed", 7)))
    assert said["gpu"] == (("H100", 1),)
    assert said["seed"] == (("7", 1),)


def test_what_nobody_recorded_is_named_once() -> None:
    ((line, count),) = next(f.values for f in provenance(found([run("a")])) if _is_missing(f))
    assert count == 1
    assert {"driver", "power cap", "nccl", "adapters"} <= set(line.split(", "))
    assert not {"commit", "jobs", "nodes"} & set(line.split(", "))
    used = Transport(nccl_version=("2.27",), adapters=(Adapter(name="mlx5_0:1", link_layer="IB"),))
    said = facts(found([run("a")], transports={"a": used}))
    assert said["adapters"] == (("mlx5_0:1 IB", 1),)
    assert "adapters" not in str(said[NOT_RECORDED])


def test_logs_are_named_by_their_digest(tmp_path: Path) -> None:
    one = written(tmp_path, "a", "first\n")
    before = facts(found([one]), Digests())["logs"]
    (one.folder.logs / "rank-0.out").write_text("fyrst\n")
    after = facts(found([one]), Digests())["logs"]
    assert before != after
    assert "1 file, 6 B, sha256 " in str(before)
    assert "not digested" in str(facts(found([one]), Digests(most=5))["logs"])
    assert "logs" not in facts(found([one]))


def test_details_share_scripts_and_tell_why_a_run_failed(tmp_path: Path) -> None:
    runs = [
        written(tmp_path, "a", "fine\n"),
        written(tmp_path, "b", "Traceback (most recent call last):\nKeyError: 'x'\n", 1),
    ]
    (good, bad), scripts = details(found(runs))
    assert scripts == {"d" * 64: "#!/bin/bash\n"}
    assert good.script == bad.script == "d" * 64
    assert good.diagnosis == ""
    assert "KeyError" in bad.diagnosis
    assert ("launcher", "torchrun", "site_profiles/local.yaml:11") in bad.settings
