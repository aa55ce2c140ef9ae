"""No shipped profile or template puts an empty part, which is the current folder, on a path."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.base.data_folders import profile_folder, template_folder
from hpc_train.sites.load import load_site

PROFILES = sorted(profile_folder().glob("*.yaml"))
TEMPLATES = sorted(template_folder().glob("*.j2"))
# The value ends at a blank outside ${...} and quotes.
ASSIGNED = re.compile(r'\b([A-Z_]{0,40}(?:PATH|PRELOAD))=((?:\$\{[^}\n]*\}|"[^"\n]*"|[^\s;&|])+)')
VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z_0-9]{0,60})")


def empty_parts(text: str) -> Iterator[str]:
    """Yield the assignments that bash expands to an empty part where the variable was unset."""
    for match in ASSIGNED.finditer(text):
        name, value = match.groups()
        others = {other: "/x" for other in VARIABLE.findall(value) if other != name}
        # No shell runs without PATH.
        if ":" in value and name != "PATH":
            done = subprocess.run(
                ["/bin/bash", "-uc", f'{name}={value}; printf %s "${name}"'],
                env=others,
                capture_output=True,
                text=True,
                timeout=240,
            )
            if done.returncode or "" in done.stdout.split(":"):
                yield match[0]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: str(path.stem))
def test_the_setup_of_a_profile(path: Path) -> None:
    site = load_site(str(path)).value
    lines = [*site.setup, *(site.containers.setup if site.containers else ())]
    assert list(empty_parts("\n".join(lines))) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.name))
def test_a_template(path: Path) -> None:
    assert list(empty_parts(path.read_text(encoding="utf-8"))) == []
