"""A bundle gives the same report anywhere, and nothing in it can do harm."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import msgspec
import pytest
import zstandard

from hpc_train.errors import StoreError
from hpc_train.model.log_selection import Search
from hpc_train.model.plan import Secret
from hpc_train.model.report_options import ReportOptions
from hpc_train.pipeline.collect import collection
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import ReportInputs, report_inputs
from hpc_train.pipeline.write_bundle import check_ending, write_bundle
from hpc_train.pipeline.write_report import render_report
from hpc_train.runs.bundle_format import EVIDENCE, MANIFEST
from hpc_train.runs.read_bundle import open_bundle
from tests.pipeline.runs_of import written

STEPS = "".join(
    f'@hpct {{"event":"step","rank":0,"step":{n},"step_time":0.{n % 7 + 1},"samples":8}}\n'
    for n in range(1, 40)
)
ASKED = ReportOptions(details=True, digests=True)
FAILED = "Traceback (most recent call last):\nKeyError: 'x'\n"
HIDE = "hf_ABCDEFGHIJKLMNOPQRSTUVWX"


def found(word: Path) -> ReportInputs:
    return report_inputs([str(word)], Search(root=Path("none")))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the folder of three runs, one of which failed."""
    for name, log, code in (("a", STEPS, 0), ("b", STEPS, 0), ("c", STEPS + FAILED, 1)):
        written(tmp_path / "job", name, log, code)
    return tmp_path / "job"


@pytest.fixture
def bundle(home: Path) -> Path:
    return packed(home, home.parent / "out.tar.zst")


def packed(home: Path, path: Path) -> Path:
    here = found(home)
    write_bundle(here, build_report(here, ASKED), ASKED, path)
    return path


def members(path: Path) -> dict[str, bytes]:
    content = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {one.name: file.read() for one in tar if (file := tar.extractfile(one))}


def repacked(path: Path, files: dict[str, bytes], *more: tarfile.TarInfo) -> Path:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for entry in more:
            tar.addfile(entry)
    path.write_bytes(zstandard.compress(out.getvalue()))
    return path


def relisted(path: Path, files: dict[str, bytes]) -> Path:
    """Pack changed members with a list that agrees with them, as somebody with intent would."""
    said = json.loads(files[MANIFEST])
    said["members"] = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
        if name != MANIFEST
    }
    return repacked(path, {**files, MANIFEST: json.dumps(said).encode()})


def refusal(path: Path, **limits: int) -> str:
    with pytest.raises(StoreError) as caught:
        open_bundle(path, **limits)
    assert caught.value.exit_code == 2
    return caught.value.message


def test_the_report_is_the_same_without_the_study(home: Path, bundle: Path) -> None:
    forms = ("text", "markdown", "json", "csv")
    before = [render_report(build_report(found(home), ASKED), form) for form in forms]
    details = build_report(found(home), ASKED).details
    records = list(collection([str(home)], Search(root=Path("none"))))
    shutil.rmtree(home)
    opened = found(bundle)
    assert [render_report(build_report(opened, ASKED), form) for form in forms] == before
    assert build_report(opened, ASKED).details == details
    assert "KeyError" in details[2].diagnosis
    assert list(collection([str(bundle)], Search(root=Path("none")))) == records
    again = bundle.with_name("again.tar.zst")
    write_bundle(opened, build_report(opened, ASKED), ASKED, again)
    assert again.read_bytes() == bundle.read_bytes()


def test_it_holds_what_a_reviewer_needs_and_no_log(home: Path, bundle: Path) -> None:
    files = members(bundle)
    assert list(files) == [*sorted(name for name in files if name != MANIFEST), MANIFEST]
    wanted = {"run.json", "job.sbatch", "status.json", "submission.json", "records.jsonl"}
    assert {f"a/{name}" for name in wanted} | {"c/diagnosis.txt"} <= set(files)
    assert {"report.md", "report.json", "report.csv", "evidence.json"} <= set(files)
    assert not any("logs/" in name for name in files)
    assert files["a/job.sbatch"] == (home / "a" / "job.sbatch").read_bytes()
    assert json.loads(files[MANIFEST])["notes"] == ["the profile lab.yaml does not exist"]


def test_what_a_person_said_is_kept(home: Path) -> None:
    here, path = found(home), home.parent / "said.tar.zst"
    runs = [
        msgspec.structs.replace(run, state="EXCLUDED", problem="fan", sizes={"nodes": 2})
        for run in here.study.runs
    ]
    study = msgspec.structs.replace(here.study, runs=tuple(runs))
    said = msgspec.structs.replace(here, study=study)
    asked = msgspec.structs.replace(ASKED, allow_mixed=("commit",))
    write_bundle(said, build_report(said, asked), asked, path)
    opened = found(path).study
    assert opened.runs == tuple(runs)
    assert opened.allow_mixed == ("commit",)
    files = members(path)
    assert json.loads(files["exclude.yaml"])["a"] == "fan"
    assert json.loads(files["points.yaml"])["b"] == {"nodes": 2}


def test_logs_of_anybody_are_packed_as_records(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(STEPS)
    path = packed(log, tmp_path / "logs.tar.zst")
    before = render_report(build_report(found(log), ASKED), "json")
    log.unlink()
    assert render_report(build_report(found(path), ASKED), "json") == before
    assert "x.log: " in before


def test_no_secret_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that the job names, nor one of this shell, nor a text that looks like one."""
    file = tmp_path / "key"
    file.write_text("a-secret-of-a-file\n")
    monkeypatch.setenv("WANDB_API_KEY", "plain-words-of-a-shell")
    said = ("plain-words-of-a-shell", "a-secret-of-a-file", HIDE)
    log = f"{STEPS}Traceback (most recent call last):\nKeyError: '{' '.join(said)}'\n"
    run = written(tmp_path / "job", "a", log, 1)
    assert run.manifest is not None
    secrets = (Secret(name="KEY_OF_MINE", file=str(file)),)
    plan = msgspec.structs.replace(run.manifest.plan, secrets=secrets)
    written(tmp_path / "job", "b", log, 1, plan=plan)
    files = members(packed(tmp_path / "job", tmp_path / "out.tar.zst"))
    assert b"<WANDB_API_KEY> <KEY_OF_MINE> hf_" in files["b/diagnosis.txt"]
    everything = b"".join(files.values())
    assert not [word for word in said if word.encode() in everything]


def test_a_changed_member_is_named(bundle: Path) -> None:
    files = members(bundle)
    changed = {**files, "a/records.jsonl": files["a/records.jsonl"].replace(b"0.1", b"0.2")}
    assert "a/records.jsonl: damaged" in refusal(repacked(bundle, changed))
    less = {name: content for name, content in files.items() if name != "b/run.json"}
    assert "b/run.json: missing" in refusal(repacked(bundle, less))
    assert "new: damaged" in refusal(repacked(bundle, {**files, "new": b""}))


def test_a_file_that_was_cut_or_is_something_else_is_refused(bundle: Path) -> None:
    whole = bundle.read_bytes()
    bundle.write_bytes(whole[: len(whole) // 2])
    assert str(bundle) in refusal(bundle)
    bundle.write_bytes(b"no archive")
    assert "damaged after its beginning" in refusal(bundle)
    assert "not a bundle of hpctrain" in refusal(repacked(bundle, {"x": b""}))


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../../x", "a//x", "a\\x", "./x", "a/./x", "a\n/../../x"]
)
def test_names_that_leave_the_folder_are_refused(bundle: Path, name: str) -> None:
    assert "only plain files" in refusal(repacked(bundle, {name: b"x"}))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_what_is_no_plain_file_is_refused(bundle: Path, kind: bytes) -> None:
    entry = tarfile.TarInfo("a")
    entry.type, entry.linkname = kind, "/etc/passwd"
    assert "only plain files" in refusal(repacked(bundle, {}, entry))


def test_bombs_are_refused(bundle: Path) -> None:
    assert "larger than a bundle may be" in refusal(bundle, most=1000)
    entry = tarfile.TarInfo("a")
    entry.pax_headers = {"comment": "x" * (16 << 20)}
    assert "a header larger" in refusal(repacked(bundle, {}, entry))
    assert "a/run.json" in refusal(repacked(bundle, {"a/run.json/b": b"", "a/run.json": b""}))
    assert "File exists" in refusal(repacked(bundle, {EVIDENCE: b""}, tarfile.TarInfo(EVIDENCE)))


@pytest.mark.parametrize("run", ["../a", "/etc", "..", "a/b", "", "a\n/.."])
def test_a_run_that_leaves_the_bundle_is_refused(bundle: Path, run: str) -> None:
    files = members(bundle)
    said = json.loads(files["evidence.json"])
    said["runs"][0]["run_id"] = run
    changed = {**files, "evidence.json": json.dumps(said).encode()}
    assert f"evidence.json: {run!r}: not a name of a run" in refusal(relisted(bundle, changed))


def test_no_file_of_this_machine_is_packed_for_a_bundle_of_others(
    bundle: Path, tmp_path: Path
) -> None:
    key = tmp_path / "key.yaml"
    key.write_text("mine alone\n")
    files = {
        name: content.replace(b"/sites/lab.yaml", str(key).encode())
        for name, content in members(bundle).items()
    }
    again = members(packed(relisted(bundle, files), tmp_path / "again.tar.zst"))
    assert not any(name.startswith("profiles/") for name in again)
    assert b"mine alone" not in b"".join(again.values())


def test_a_newer_schema_is_named(bundle: Path) -> None:
    newer = b'{"schema": 2, "hpctrain": "9.0", "members": {"x": 1}}'
    said = refusal(repacked(bundle, {**members(bundle), MANIFEST: newer}))
    assert "written by a newer hpctrain (schema 2, this one reads 1)" in said


def test_a_bundle_stands_alone_and_has_its_name(home: Path, bundle: Path) -> None:
    with pytest.raises(StoreError, match="a bundle is the only argument"):
        report_inputs([str(bundle), str(home)], Search(root=Path("none")))
    for name in ("out.zip", ".tar.zst"):
        with pytest.raises(StoreError, match=r"ends in \.tar\.zst"):
            check_ending(Path(name))
    with pytest.raises(StoreError, match="cannot be written"):
        packed(home, home / "no" / "x.tar.zst")
