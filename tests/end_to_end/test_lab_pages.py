"""The pages about hosts, PBS, SageMaker, and all of them: the commands print what is shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hpc_train.lab.sagemaker import start_and_stop as sagemaker
from hpc_train.lab.ssh_hosts import start_and_stop as hosts
from hpc_train.pipeline.lab import running_pbs, stop_pbs
from tests.conftest import refuse
from tests.project.shown_commands import ROOT, printed, shown, type_page
from tests.project.tour import INSTALLED, desk

# Each command has a shell of its own.
SOURCE = "[ ! -e /var/tmp/hpctrain-{0}/env ] || . /var/tmp/hpctrain-{0}/env; "


class LabPage(NamedTuple):
    """The commands of a page with one prompt, which start a lab, use it and stop it."""

    page: str
    prompt: str
    typed: int
    folder: str
    found: Callable[[], object]
    stop: Callable[[], object]


PAGES = {
    "--ssh": LabPage("hosts", "#", 6, "ssh", hosts.read, hosts.stop),
    "--pbs": LabPage("pbs", "$", 4, "pbs-$(id -u)", running_pbs, lambda: stop_pbs(None)),
    "--sagemaker": LabPage(
        "sagemaker",
        "#",
        5,
        "sagemaker",
        sagemaker.read,
        sagemaker.stop_service,
    ),
}


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize("kind", [pytest.param("--ssh", marks=pytest.mark.ssh), *list(PAGES)[1:]])
def test_the_page_on_this_machine(kind: str, tmp_path: Path, torch: None) -> None:
    page = PAGES[kind]
    _check_machine(kind, page)
    lines = shown(ROOT / f"docs/{page.page}.md", page.prompt)
    commands = [one for one in lines if not one.line.startswith(INSTALLED)]
    try:
        typed = list(type_page(commands, tmp_path, desk(tmp_path), SOURCE.format(page.folder)))
    finally:
        page.stop()
    wrong = [f"{page.prompt} {one.line}\n{one.difference}" for one in typed if one.difference]
    assert not wrong, "\n".join(wrong)
    assert len(typed) == page.typed


def _check_machine(kind: str, page: LabPage) -> None:
    """Skip where the lab cannot be started, or is one of somebody."""
    if kind == "--sagemaker":
        pytest.importorskip("boto3")
    if page.prompt == "#" and os.geteuid() != 0:
        refuse("containers and hosts in namespaces need root")
    if page.found() is not None:
        refuse(f"it runs on this machine; end it with: hpctrain lab down {kind}")


@pytest.mark.long
@pytest.mark.process
@pytest.mark.ssh
def test_one_study_on_all_schedulers(no_lab: None, tmp_path: Path, torch: None) -> None:
    """A job file of examples/ runs on this machine and four labs, and one report compares them."""
    for kind, page in PAGES.items():
        _check_machine(kind, page)
    source = "".join(SOURCE.format(page.folder) for page in PAGES.values())
    commands = shown(ROOT / "docs" / "schedulers.md", "#")
    environment = desk(tmp_path)
    try:
        typed = list(type_page(list(commands), tmp_path, environment, source))
    finally:
        for page in PAGES.values():
            page.stop()
        printed("hpctrain lab down", tmp_path, environment)
    wrong = [f"# {one.line}\n{one.difference}" for one in typed if one.difference]
    assert not wrong, "\n".join(wrong)
    assert len(typed) == 10
