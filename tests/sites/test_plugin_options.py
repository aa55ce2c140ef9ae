"""Options that a site's plug-ins add: declared once, then usable in the profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SiteProfileError
from hpc_train.sites.load import load_site

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
plugin_options: {image: value, ccm: none}
"""


def load(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SITE}{text}\n")
    load_site(str(path))


@pytest.mark.parametrize(
    "text", ["directives: {image: a, ccm: true}", "forbidden: {image: slow}", ""]
)
def test_a_declared_option_is_an_option(tmp_path: Path, text: str) -> None:
    load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("directives: {image: ''}", "--image needs a value"),
        ("directives: {ccm: quick}", "--ccm takes no value"),
        ('directives: {image: "a\\nb"}', "cannot be written as an #SBATCH value"),
        ("directives: {imge: a}", "sbatch has no option 'imge'; did you mean 'image'"),
    ],
)
def test_its_value_is_checked(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SiteProfileError, match=message):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{nodes: value}", "--nodes is an option of Slurm or pyxis"),
        ("{--image: value}", "plugin_options"),
        ("{image: maybe}", "must be one of|maybe"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path: Path, options: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SITE.replace("{image: value, ccm: none}", options))
    with pytest.raises(SiteProfileError, match=message):
        load_site(str(path))
