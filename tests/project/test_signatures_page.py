"""docs/diagnose.md: its file is read, its answers are those of the command."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import run_command

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "diagnose.md").read_text()
PAGE = PAGE.partition("## Texts of your own")[2]
LOG = "step 10 loss 2.31\nn17 quotad: project proj0042 is frozen since 2026-11-02\nStopped\n"


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a site folder with the file of the page, and a log beside it."""
    folder = tmp_path / "site" / "signatures"
    folder.mkdir(parents=True)
    (folder / "mysite.yaml").write_text(block("yaml"))
    (tmp_path / "slurm-4711.out").write_text(LOG)
    return folder.parent


def hpctrain(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": str(Path(sys.executable).parent),
        "HPCTRAIN_SITE_PATH": str(site),
        "XDG_CONFIG_HOME": str(site.parent),
        "COLUMNS": "100",
    }
    return run_command(words, environment, site.parent)


def test_the_answer_of_the_page_is_that_of_the_command(site: Path) -> None:
    done = hpctrain(site, "diagnose", "slurm-4711.out")
    assert (done.returncode, done.stderr) == (0, "")
    _, _, shown = block("console").partition("slurm-4711.out\n")
    assert done.stdout.startswith(shown)


def test_the_list_says_where_each_is_from(site: Path) -> None:
    rows = hpctrain(site, "diagnose", "--list").stdout.splitlines()
    file = site / "signatures" / "mysite.yaml"
    assert rows[0].split()[:4] == ["id", "group", "severity", "from"]
    assert rows[1].split()[:4] == ["mysite_quota_frozen", "site", "fatal", f"{file}:4"]
    assert rows[2].split()[:4] == ["mysite_prolog_failed", "site", "fatal", f"{file}:13"]
    assert {row.split()[3] for row in rows[3:]} == {"hpctrain"}
    explained = hpctrain(site, "diagnose", "--list", "mysite_quota_frozen").stdout
    assert explained.startswith("mysite_quota_frozen fatal: Project {project}")


def test_the_mistake_of_the_page_is_that_of_the_command(site: Path) -> None:
    file = site / "signatures" / "mysite.yaml"
    file.write_text(
        file.read_text().replace("title: Project {project}", "title: Project {projekt}")
    )
    for words in (["diagnose", "slurm-4711.out"], ["diagnose", "--list"]):
        done = hpctrain(site, *words)
        assert done.returncode == 2
        assert done.stdout == ""
        said = " ".join(block("text").split()).replace(
            "/sw/hpctrain/signatures/mysite.yaml", str(file)
        )
        assert said in " ".join(done.stderr.split())
