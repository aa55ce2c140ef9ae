"""Completion of a shell: what it offers for sites, runs, formats, commands and options."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(hpctrain: Hpctrain) -> Offered:
    """Return what bash would offer for the last of some words."""

    def ask(*words: str) -> list[str]:
        done = hpctrain(
            COMP_WORDS=" ".join(["hpctrain", *words]),
            COMP_CWORD=str(len(words)),
            _HPCTRAIN_COMPLETE="bash_complete",
        )
        assert not done.stderr
        return [line.partition(",")[2] for line in done.stdout.splitlines() if line]

    return ask


@pytest.mark.parametrize(
    ("words", "offer"),
    [
        ("re", "render"),
        ("report --wid", "--width"),
        ("submit train.py --site leon", "leonardo"),
        ("site show leon", "leonardo"),
        ("submit train.py --launcher tor", "torchrun"),
    ],
)
def test_names_of_the_package(offered: Offered, words: str, offer: str) -> None:
    assert offer in offered(*words.split())


@pytest.mark.process
def test_runs_studies_and_files(hpctrain: Hpctrain, offered: Offered) -> None:
    Path("train.py").write_text("print('done')\n")
    Path("trail.log").write_text("x\n")
    run = hpctrain("submit", "train.py", "--site", "local", "--wait").stdout.strip()
    for verb in ("status", "logs", "cancel", "retry"):
        assert offered(verb, "tra") == ["train"]
        assert offered(verb, run[:8]) == [run]
    for verb in ("report", "collect", "diagnose", "compare", "explain"):
        assert offered(verb, "tra") == ["train", "trail.log", "train.py"]
    assert offered("report", "results/") == ["results/train/"]


def test_nothing_to_offer_is_no_error(offered: Offered) -> None:
    assert offered("status", "x") == []
    Path("results").write_text("no folder")
    assert offered("status", "x") == []
    assert offered("report", "missing/x") == []
