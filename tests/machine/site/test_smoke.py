"""What a smoke job said, and what in that is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError
from hpc_train.machine.smoke_job import Smoke, read_smoke
from hpc_train.runs.run import RunFolder
from hpc_train.sites.load import load_site

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
    return read_smoke(said(file.parent, text), load_site("mine").value)


def test_a_good_site_has_no_complaints(file: Path) -> None:
    seen = smoke(file)
    assert (seen.ranks, seen.hosts, seen.warnings) == (8, ("n1", "n2"), ())
    assert (seen.interface, seen.busbw_gbs) == ("ib0", 10.0)


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
    assert (seen.transport, seen.warnings) == ("IBext", ())


@pytest.mark.parametrize("log", ["", "@hpct {", '@hpct {"event": "step"}', "@hpct [1]"])
def test_a_job_that_said_nothing(file: Path, log: str) -> None:
    with pytest.raises(SiteProfileError, match="printed no result"):
        read_smoke(said(file.parent, log), load_site("mine").value)
