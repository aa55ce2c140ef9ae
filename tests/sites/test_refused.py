"""What a profile may not say: the line, the rule, and the nearest word."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from tests.cases import cases

ROOT = Path(__file__).parents[2]
HEAD = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun, torchrun]}
"""
FULL = """\
partitions: [{name: gpu}, {name: debug}]
network:
  fabric: roce
  interfaces: [eth0, bond0.100]
  hcas: [mlx5_0, "mlx5_1:1"]
  gdr_level: PHB
  nccl: "2.20.5"
env_blocks:
  - when: {nodes: ">1", partition: [gpu, debug], launcher: srun, runtime: [nccl, rccl],
           vendor: nvidia, container: false}
    env: {A: 0123}
  - {env: {C: 1}, already_set_by: a module}
"""


def loaded(text: str, folder: Path) -> SiteProfile:
    path = folder / "mine.yaml"
    path.write_text(f"{HEAD}{text}\n")
    return load_site(str(path)).value


@pytest.mark.parametrize(("text", "said"), cases("sites/refused.yaml", "refused"))
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SiteProfileError, match=r"mine\.yaml:[6-9]: ") as caught:
        loaded(text, tmp_path)
    failure = caught.value
    assert said in failure.message
    # A secret is not repeated.
    assert "hush" not in failure.message + failure.hint
    assert ("hush" in text) is ("remove it from the profile" in failure.hint)


@pytest.mark.parametrize("text", cases("sites/refused.yaml", "accepted"))
def test_what_is_accepted(tmp_path: Path, text: str) -> None:
    assert loaded(text, tmp_path).name == "mine"


def test_launchers_may_be_forbidden_and_no_other_word(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for key in ("forbidden", "warned"):
        for launcher in ("mpiexec", "mpirunn"):
            path.write_text(HEAD.replace("}", f", {key}: {{{launcher}: why}}}}"))
            if launcher == "mpiexec":
                assert launcher in getattr(load_site(str(path)).value.launchers, key)
                continue
            with pytest.raises(SiteProfileError, match="unknown launcher 'mpirunn'; did you mean"):
                load_site(str(path))


@pytest.mark.parametrize(
    ("was", "becomes", "line"),
    [
        ("gdr_level: PHB", "gdr_level: 3", 11), ("bond0.100", "^lo", 9),
        ('nccl: "2.20.5"', "nccl: 2.20", 12), ('nodes: ">1"', 'nodes: "=>1"', 14),
        ("C: 1", "C-D: 1", 17),
    ],
)  # fmt: skip
def test_the_line_is_that_of_the_mistake(was: str, becomes: str, line: int, tmp_path: Path) -> None:
    site = loaded(FULL, tmp_path)
    assert site.env_blocks[0].env == {"A": "0123"}, "as it is written"
    with pytest.raises(SiteProfileError, match=rf"mine\.yaml:{line}: "):
        loaded(FULL.replace(was, becomes), tmp_path)


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
