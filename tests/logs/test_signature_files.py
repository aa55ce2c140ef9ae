"""The files of signatures: the package's keep the rules; a site's are checked, and come first."""

import time
from pathlib import Path

import pytest

from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import SignatureError
from hpc_train.diagnosis.signatures import (
    PACKAGED,
    catalogue,
    check,
    packaged,
    read_own,
    read_signatures,
)
from tests.cases import cases
from tests.logs.sighted import ids, sighted

FOLDER = data_file("signatures")
FILES = sorted(FOLDER.glob("*.yaml"))
OWN = """\
schema: 1
signatures:
  our_quota_daemon:
    group: site
    severity: fatal
    pattern: 'quotad: project (?P<project>\\w{1,32}) is frozen'
    title: Project {project} is frozen
    cause: Its storage is over the quota for more than a week.
    advice: quota-report {project}
    example: 'quotad: project proj0042 is frozen'
"""
QUOTA = """\
schema: 1
signatures:
  disk_quota:
    group: filesystem
    severity: fatal
    pattern: "Disk quota exceeded: '(?P<path>/home/\\\\w{1,32})"
    title: The quota of {path} is used up
    cause: Too many bytes.
    advice: lquota
    example: "OSError: [Errno 122] Disk quota exceeded: '/home/ann/ckpt.pt'"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of signatures of a site that is on the search path."""
    folder = tmp_path / "site" / "signatures"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HPCTRAIN_SITE_PATH", f"{tmp_path / 'none'}:{folder.parent}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_a_file_of_the_package_keeps_the_schema_and_the_rules(path: Path) -> None:
    file, signatures = read_signatures(path, PACKAGED)
    assert signatures
    for signature in signatures:
        check(signature, file)


def test_each_file_of_the_package_is_tried() -> None:
    read = {name for path in FILES for name in read_signatures(path)[0].value.signatures}
    assert {one.id for one in packaged()} == read
    assert len(packaged()) == len(read) > 200


def test_a_signature_of_a_site_is_seen_and_says_where_it_is_from(site: Path) -> None:
    (site / "ours.yaml").write_text(OWN)
    first, *others = catalogue().signatures
    assert (first.id, first.origin) == ("our_quota_daemon", f"{site / 'ours.yaml'}:3")
    assert first.literals == ("quotad: project ",)
    assert {one.origin for one in others} == {PACKAGED}
    assert len(others) == len(packaged())
    assert ids("quotad: project proj0042 is frozen\n") == ["our_quota_daemon"]


def test_a_site_takes_a_line_from_the_package_and_replaces_by_id(site: Path) -> None:
    line = "OSError: [Errno 122] Disk quota exceeded: '/home/ann/ckpt.pt'"
    (site / "ours.yaml").write_text(QUOTA)
    assert [one.title for one in catalogue().signatures if one.id == "disk_quota"] == [
        "The quota of {path} is used up"
    ]
    (seen,) = sighted(line)
    assert (seen.signature, dict(seen.groups)) == ("disk_quota", {"path": "/home/ann"})


def test_the_first_folder_of_the_path_wins(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "ours.yaml").write_text(OWN)
    user = tmp_path / "config" / "hpctrain" / "signatures"
    user.mkdir(parents=True)
    (user / "mine.yaml").write_text(OWN.replace("group: site", "group: filesystem"))
    assert [one.group for one in catalogue().signatures if one.origin != PACKAGED] == ["site"]
    monkeypatch.delenv("HPCTRAIN_SITE_PATH")
    assert [one.group for one in catalogue().signatures if one.origin != PACKAGED] == ["filesystem"]


def test_two_of_one_id_in_a_folder_are_refused(site: Path) -> None:
    for name in ("a", "b"):
        (site / f"{name}.yaml").write_text(OWN)
    with pytest.raises(SignatureError) as caught:
        catalogue()
    assert caught.value.message == (
        f"{site / 'b.yaml'}:3: signatures.our_quota_daemon: "
        f"{site / 'a.yaml'}:3 has this id, too; choose another"
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    cases("logs/mistakes_in_signatures.yaml", "a_mistake_is_answered_with_its_line"),
)
def test_a_mistake_is_answered_with_its_line(
    site: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in OWN
    (site / "ours.yaml").write_text(OWN.replace(old, new, 1))
    with pytest.raises(SignatureError) as caught:
        catalogue()
    assert caught.value.message.startswith(f"{site / 'ours.yaml'}:{line}: ")
    assert said in caught.value.message


def test_a_pattern_of_a_site_is_searched_near_its_literal(tmp_path: Path) -> None:
    slow = OWN.replace("quotad: project", ".*.*quotad: project")
    (tmp_path / "ours.yaml").write_text(slow)
    (one,) = read_own(tmp_path / "ours.yaml")
    started = time.process_time()
    found = one.search("x" * 400_000 + "quotad: project a is frozen" + "x" * 400_000)
    # Over the whole line it would be the square of the length.
    assert time.process_time() - started < 10
    assert found is not None
    assert found["project"] == "a"
