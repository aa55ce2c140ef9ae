"""The page about hosts: every command of root prints what is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.lab.ssh_hosts import start_and_stop as hosts
from tests.conftest import refuse
from tests.project.shown_commands import ROOT, shown, type_page
from tests.project.tour import INSTALLED, desk

pytestmark = [pytest.mark.ssh, pytest.mark.slow]
# Each command has a shell of its own.
ENVIRONMENT = "[ ! -e /var/tmp/hpctrain-ssh/env ] || . /var/tmp/hpctrain-ssh/env; "


def test_the_page_on_this_machine(tmp_path: Path, torch: None) -> None:
    if os.geteuid() != 0:
        refuse("hosts in namespaces need root")
    if hosts.read() is not None:
        refuse("hosts are up on this machine; end them with: hpctrain lab down --ssh")
    page = [one for one in shown(ROOT / "docs/hosts.md", "#") if not one.line.startswith(INSTALLED)]
    try:
        typed = list(type_page(page, tmp_path, desk(tmp_path), ENVIRONMENT))
    finally:
        hosts.stop()
    wrong = [f"$ {one.line}\n{one.difference}" for one in typed if one.difference]
    assert not wrong, "\n".join(wrong)
    assert len(typed) == 6
