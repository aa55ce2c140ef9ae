"""A profile's network, env_blocks and rendezvous: what is refused, and the nearest word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from tests.sites.refused import refused

ROOT = Path(__file__).parents[2]
HEAD = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun, torchrun]}
partitions: [{name: gpu}, {name: debug}]
"""
FULL = """\
network:
  fabric: roce
  interfaces: [eth0, bond0.100]
  hcas: [mlx5_0, "mlx5_1:1"]
  gdr_level: PHB
  gid_index: 3
  traffic_class: 106
  nccl: "2.20.5"
  gpus: nvidia
env_blocks:
  - when: {nodes: ">1", partition: [gpu, debug], launcher: srun, runtime: [nccl, rccl],
           vendor: nvidia, nccl: ">=2.20,<2.30", container: false}
    scope: ranks
    env: {A: 0123}
    unset: [B]
    mode: append
    separator: ","
    why: w
    source: s
  - {env: {C: 1}, already_set_by: a module}
"""


def loaded(text: str, tmp_path: Path) -> SiteProfile:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + text)
    return load_site(str(path)).value


def test_every_key_is_read(tmp_path: Path) -> None:
    site = loaded(FULL, tmp_path)
    assert site.network is not None
    assert site.network.gdr_level == "PHB"
    assert site.network.nccl == "2.20.5"
    first, second = site.env_blocks
    assert first.env == {"A": "0123"}, "as it is written"
    assert first.when.nodes == ">1"
    assert second.already_set_by == "a module"


@pytest.mark.parametrize("profile", ["slingshot-amd", "infiniband-nvidia", "cloud-efa"])
def test_the_interpreter_survives_a_profile(profile: str) -> None:
    path = Path(__file__).parent / f"profiles/{profile}.yaml"
    code = f"from hpc_train.sites.load import load_site; load_site({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        # Memory that was given back is overwritten, so that its use does not go unseen.
        env={**os.environ, "PYTHONMALLOC": "debug", "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=240,
    )
    assert done.returncode == 0


def network(keys: str) -> str:
    return f"network:\n  {keys}\n"


def block(keys: str) -> str:
    return f"env_blocks:\n  - {keys}\n"


@pytest.mark.parametrize(("text", "message"), refused("network"))
def test_what_is_wrong_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SiteProfileError) as caught:
        loaded(text, tmp_path)
    pattern = message.replace("?", r"\?") if ".*" in message else re.escape(message)
    assert re.search(pattern, caught.value.message), caught.value.message
    assert "mine.yaml:8: " in caught.value.message


@pytest.mark.parametrize(
    ("was", "becomes", "line"),
    [
        ("gdr_level: PHB", "gdr_level: 3", 11), ("bond0.100", "^lo", 9),
        ('nccl: "2.20.5"', "nccl: 2.20", 14), ('nccl: ">=2.20', 'nccl: "=>2.20', 18),
        ("unset: [B]", "unset: [A]", 20), ("C: 1", "C-D: 1", 26),
    ],
)  # fmt: skip
def test_the_line_is_that_of_the_mistake(was: str, becomes: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(SiteProfileError, match=rf"mine\.yaml:{line}: "):
        loaded(FULL.replace(was, becomes), tmp_path)


MEETING = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
rendezvous: {host: "HOST", suffix: "SUFFIX"}
"""


def method(folder: Path, host: str, suffix: str = "") -> str:
    path = folder / "mine.yaml"
    path.write_text(MEETING.replace("HOST", host).replace("SUFFIX", suffix))
    return load_site(str(path)).value.rendezvous.host


@pytest.mark.parametrize(
    "host",
    ["first-host", "batch-host", "hostname-ip", "address:2", "remote-address:1", "interface:hsn0"],
)
def test_a_method_that_there_is(tmp_path: Path, host: str) -> None:
    assert method(tmp_path, host) == host


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
        method(tmp_path, host)
    assert failure.value.message.startswith(f"{tmp_path}/mine.yaml:6: rendezvous.host: ")
    assert said in failure.value.message


def test_a_suffix_belongs_to_a_name(tmp_path: Path) -> None:
    assert method(tmp_path, "resolver", "i") == "resolver"
    with pytest.raises(SiteProfileError, match="a suffix needs a host name, which address:2"):
        method(tmp_path, "address:2", "i")
