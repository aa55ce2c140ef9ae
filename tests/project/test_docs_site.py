"""The documentation as a site: it has the commands, the docstrings and the catalogues."""

import html
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import hpc_train
from hpc_train.base.data_folders import profile_folder
from hpc_train.base.registry import BUILT_IN
from hpc_train.cli.commands import COMMANDS
from hpc_train.diagnosis.signatures import catalogue
from hpc_train.lint.rules import all_rules
from hpc_train.machine.check_site import key_rows

ROOT = Path(__file__).resolve().parents[2]
CATALOGUES: dict[str, tuple[str, Callable[[], Iterable[str]]]] = {
    "lint": ("hpctrain lint --list", lambda: [one.id for one in all_rules()]),
    "failures": ("hpctrain diagnose --list", lambda: [one.id for one in catalogue().signatures]),
    "logs": ("hpctrain collect --list", lambda: BUILT_IN["parsers"]),
    "sites": (
        "hpctrain site list",
        lambda: [one.stem for one in profile_folder().glob("*.yaml")],
    ),
    "site-reference": ("hpctrain site schema --keys", lambda: [row[0] for row in key_rows()]),
}
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")


@pytest.mark.process
def test_the_site_is_complete(tmp_path: Path) -> None:
    """A link or an anchor that does not exist is an error of the build."""
    words = ("build", "--strict", "--quiet", "-f", "docs/mkdocs/mkdocs.yml", "-d", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.html")}
    written = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages.keys() - {"404"} == written | {"index"} | CATALOGUES.keys()
    for name, (command, entries) in CATALOGUES.items():
        assert command in pages[name]
        assert [one for one in entries() if f">{html.escape(one)}" not in pages[name]] == []
    assert [name for name in COMMANDS if f"Usage: hpctrain {name}" not in pages["commands"]] == []
    text = html.unescape(re.sub(r"<[^<>]+>", "", pages["python"]))
    for name in hpc_train.__all__:
        thing = getattr(hpc_train, name)
        if callable(thing):
            assert (inspect.getdoc(thing) or name).splitlines()[0].replace("`", "") in text
    for name, page in pages.items():
        elsewhere = [one for one in LOADED.findall(page) if "rel=canonical" not in one]
        assert elsewhere == [], name
        code = re.compile(r"<(pre|code).*?</\1>", re.DOTALL)
        assert "```" not in code.sub("", page), name
