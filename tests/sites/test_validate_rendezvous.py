"""Methods of finding rank 0's address: what a profile may say."""

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
rendezvous: {host: "HOST", suffix: "SUFFIX"}
"""


def load(folder: Path, host: str, suffix: str = "") -> str:
    path = folder / "mine.yaml"
    path.write_text(SITE.replace("HOST", host).replace("SUFFIX", suffix))
    return load_site(str(path)).value.rendezvous.host


@pytest.mark.parametrize(
    "host",
    ["first-host", "batch-host", "hostname-ip", "address:2", "remote-address:1", "interface:hsn0"],
)
def test_a_method_that_there_is(tmp_path: Path, host: str) -> None:
    assert load(tmp_path, host) == host


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("firsthost", "'firsthost' is none; did you mean 'first-host'?; allowed: loopback, "),
        ("address", "did you mean 'address:N'?"),
        ("address:0", "(N from 1 to 9)"),
        ("interface:a b", "'interface:a b' is none"),
        ("interface:$(id)", "is none"),
    ],
)
def test_one_that_there_is_not(tmp_path: Path, host: str, said: str) -> None:
    with pytest.raises(SiteProfileError) as failure:
        load(tmp_path, host)
    assert failure.value.message.startswith(f"{tmp_path}/mine.yaml:6: rendezvous.host: ")
    assert said in failure.value.message


def test_a_suffix_belongs_to_a_name(tmp_path: Path) -> None:
    assert load(tmp_path, "resolver", "i") == "resolver"
    with pytest.raises(SiteProfileError, match="a suffix needs a host name, which address:2"):
        load(tmp_path, "address:2", "i")
