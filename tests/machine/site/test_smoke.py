"""What a smoke job said, what in that is told, and what is kept of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train.base import data_folders
from hpc_train.base.errors import SiteProfileError
from hpc_train.machine.smoke_job import Smoke, read_smoke, save_result
from hpc_train.runs.run import RunFolder
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import Expected, SiteProfile

SITE = """\
# A comment that stays.
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
network: {fabric: infiniband, interfaces: [ib0]}
"""
EVENT = {
    "event": "smoke",
    "ranks": 8,
    "nodes": 2,
    "hosts": ["n1"] * 4 + ["n2"] * 4,
    "backend": "gloo",
    "launcher": "srun",
    "interface": "ib0",
    "busbw": 10.0,
}


@pytest.fixture
def file(profiles: Path) -> Path:
    path = profiles / "mine.yaml"
    path.write_text(SITE)
    return path


def said(folder: Path, log: str) -> RunFolder:
    """Return a run whose rank 0 wrote a log."""
    run = RunFolder(path=folder / "run")
    run.logs.mkdir(parents=True, exist_ok=True)
    (run.logs / "rank-0.out").write_text(log)
    return run


def smoke(file: Path, log: str = "", **changes: object) -> Smoke:
    text = f"{log}\n@hpct {json.dumps({**EVENT, **changes})}\n"
    return read_smoke(said(file.parent, text), load_site("mine").value, "2026-11-21")


def test_a_good_site_has_no_complaints(file: Path) -> None:
    seen = smoke(file)
    assert (seen.ranks, seen.hosts, seen.warnings) == (8, ("n1", "n2"), ())
    assert (seen.expected.interface, seen.expected.busbw_gbs) == ("ib0", 10.0)


@pytest.mark.parametrize(
    ("log", "changes", "complaint"),
    [
        ("", {"interface": "eth0"}, "the interface was eth0, the profile names ib0"),
        (
            "n1:1:2 [0] NCCL INFO Using network Socket",
            {"backend": "nccl"},
            "NCCL uses TCP sockets, the profile names infiniband",
        ),
    ],
)
def test_what_the_profile_does_not_promise_is_told(
    file: Path, log: str, changes: dict[str, object], complaint: str
) -> None:
    assert any(complaint in one for one in smoke(file, log, **changes).warnings)


def test_nccls_network_is_the_transport(file: Path) -> None:
    seen = smoke(file, "n1:1:2 [3] NCCL INFO Using network IBext\r", backend="nccl")
    assert (seen.expected.transport, seen.warnings) == ("IBext", ())


@pytest.mark.parametrize("log", ["", "@hpct {", '@hpct {"event": "step"}', "@hpct [1]"])
def test_a_job_that_said_nothing(file: Path, log: str) -> None:
    with pytest.raises(SiteProfileError, match="printed no result"):
        read_smoke(said(file.parent, log), load_site("mine").value, "2026-11-21")


def site() -> SiteProfile:
    return load_site("mine").value


def test_a_result_is_kept_and_compared(file: Path) -> None:
    assert save_result(site(), file, smoke(file).expected) == file
    assert file.read_text().startswith(SITE)
    kept = site().tests
    assert kept is not None
    assert kept.expect == (smoke(file).expected,)
    assert smoke(file, busbw=8.5).warnings == ()
    (slower,) = smoke(file, busbw=7.9).warnings
    assert slower == "bus bandwidth is 7.9 GB/s, on 2026-11-21 it was 10.0"
    save_result(site(), file, smoke(file, busbw=12.0).expected)
    save_result(site(), file, smoke(file, launcher="torchrun").expected)
    kept = site().tests
    assert kept is not None
    assert [(one.launcher, one.busbw_gbs) for one in kept.expect] == [
        ("srun", 12.0),
        ("torchrun", 10.0),
    ]
    assert file.read_text().count("tests:") == 1


def test_keys_behind_the_results_stay(file: Path) -> None:
    file.write_text(f"{SITE}tests:\n  expect: []\n# note\npoll: 60s\n")
    save_result(site(), file, smoke(file).expected)
    assert site().poll == 60
    assert site().tests is not None


def test_a_shipped_profile_gets_one_that_extends_it(file: Path) -> None:
    shipped = load_site("slurm-generic").value
    target = save_result(
        shipped, data_folders.profile_folder() / "slurm-generic.yaml", smoke(file).expected
    )
    assert target == file.parents[1] / "config" / "hpctrain" / "slurm-generic.yaml"
    tests = load_site("slurm-generic").value.tests
    assert tests is not None
    assert tests.expect[0].interface == "ib0"


def test_a_profile_of_the_administrators_gets_one_that_extends_it(file: Path) -> None:
    system = file.parents[1] / "system" / "mine.yaml"
    system.parent.mkdir()
    file.rename(system)
    target = save_result(site(), system, smoke(file).expected)
    assert target == file.parents[1] / "config" / "hpctrain" / "mine.yaml"
    assert system.read_text() == SITE
    assert site().tests is not None


def test_a_file_that_would_not_load_stays_as_it_is(file: Path) -> None:
    wrong = Expected(date="x", nodes=2, launcher="srun", backend="gloo")
    with pytest.raises(SiteProfileError, match="not written"):
        save_result(site(), file, wrong)
    assert file.read_text() == SITE
    assert [path.name for path in file.parent.iterdir()] == ["mine.yaml"]
