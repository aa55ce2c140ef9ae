"""The site of a command without --site, on hosts of several kinds."""

import os
from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.sites import detection
from hpc_train.sites.detection import (
    Found,
    Match,
    Scheduler,
    choose_site,
    default_site,
    detect_site,
    load_choice,
    this_host,
)

SLURM = Scheduler(kind="Slurm", cluster="alpha", evidence="ClusterName in /etc/slurm/slurm.conf")
PROFILE = """\
schema: 1
name: {name}
description: d
scheduler: {scheduler}
sources: [{{what: manual, date: 2026-08-20, confidence: high}}]
launchers: {{default: torchrun, allowed: [torchrun]}}
partitions: [{{name: gpu, default: true, max_nodes: 4}}]
detect: {detect}
"""


def match(name: str, *reasons: str, shipped: bool = True, scheduler: str = "slurm") -> Match:
    return Match(name=name, reasons=reasons, shipped=shipped, scheduler=scheduler)


def found(*matches: Match, scheduler: Scheduler | None = SLURM) -> Found:
    return Found(host="login2", scheduler=scheduler, matches=matches)


@pytest.fixture
def host(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the own profiles of a host without a scheduler."""
    monkeypatch.delenv("HPCTRAIN_SITE", raising=False)
    monkeypatch.setenv("PATH", str(profiles / "bin"))
    monkeypatch.setattr(detection, "CONF_FILES", (profiles / "slurm.conf",))
    monkeypatch.setattr(detection, "PBS_FILES", ())
    return profiles


def write(folder: Path, name: str, detect: str, scheduler: str = "slurm") -> Path:
    path = folder / f"{name}.yaml"
    fields = {"name": name, "detect": detect, "scheduler": scheduler}
    path.write_text(PROFILE.format(**fields))
    return path


def test_local_is_for_hosts_without_a_scheduler() -> None:
    choice = default_site(found(scheduler=None))
    choice.check()
    assert choice.name == "local"
    assert choice.notice == (
        "site local: no scheduler was found on login2, and no profile matches it"
    )


def test_another_scheduler_starts_nothing_here_either() -> None:
    choice = default_site(found(scheduler=Scheduler(kind="PBS", evidence="qsub, /etc/pbs.conf")))
    with pytest.raises(SiteProfileError, match="login node of a PBS cluster") as failure:
        choice.check()
    assert "hpctrain site init drafts a profile" in failure.value.hint
    assert "--site local" in failure.value.hint
    other = default_site(found(scheduler=Scheduler(kind="LSF", evidence="bsub")))
    assert "hpctrain does not submit to LSF" in other.hint


def test_a_match_is_taken_and_named() -> None:
    choice = default_site(found(match("alpha", "ClusterName alpha")))
    choice.check()
    assert choice.notice == (
        "this host looks like a login node of the Slurm cluster alpha: site alpha "
        "(ClusterName alpha)"
    )


def test_equal_matches_are_no_choice() -> None:
    choice = default_site(found(match("a", "x"), match("b", "y"), match("c", "z", shipped=False)))
    with pytest.raises(SiteProfileError, match="2 site profiles match login2 equally well: a, b"):
        choice.check()
    assert "--site a or --site b" in choice.hint


def test_the_users_words_come_first(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (host / "slurm.conf").write_text("ClusterName=alpha\n")
    assert choose_site(None).refusal
    assert choose_site("local").refusal == ""
    monkeypatch.setenv("HPCTRAIN_SITE", "local")
    choice = choose_site(None)
    assert (choice.name, choice.notice, choice.refusal) == ("local", "", "")
    assert choose_site("mine").name == "mine"


def test_more_reasons_win_then_the_users_own_profile(host: Path) -> None:
    (host / "slurm.conf").write_text("ClusterName=alpha\n")
    for name, detect in (("a", "{hosts: ['*']}"), ("b", "{hosts: ['*'], clusters: [alpha]}")):
        write(host, name, detect)
    assert [one.name for one in detect_site(this_host()).matches] == ["b", "a"]
    assert choose_site(None).name == "b"


def test_a_profile_of_another_user_here_is_left_out(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = write(Path(), "here", "{hosts: ['*']}")
    assert [one.name for one in detect_site(this_host()).matches] == ["here"]
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(here, 12345, 12345)
    now = detect_site(this_host())
    assert now.matches == ()
    assert now.unread == (
        "here.yaml: left out, as it belongs to another user: --site here.yaml uses it",
    )


@pytest.mark.parametrize("name", ["nope", "./nope.yaml"])
def test_a_wrong_name_of_the_environment_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HPCTRAIN_SITE", name)
    with pytest.raises(HpcTrainError, match="nope") as error:
        load_choice(choose_site(None))
    assert error.value.hint.startswith("the site is that of the environment variable HPCTRAIN_SITE")
    with pytest.raises(HpcTrainError, match="nope") as error:
        load_choice(choose_site(name))
    assert "environment" not in error.value.hint
