"""Plain scripts of jobs with an image: each runtime gets what the ranks need inside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.plain_scripts import plain, run
from tests.scripts.stubs import SITE

# Python 3.10 does not have it.
tomllib = pytest.importorskip("tomllib")

IMAGE = "container={image: image.img, mounts: [/data/a b], writable: true}"
# The runtime replaces it: srun opens the image.
SRUN = '#!/bin/bash\necho "${@/#/arg:}"\necho "note:$OUTSIDE_NOTE"\n'


def site(files: Path, runtime: str) -> str:
    (files / "big.yaml").write_text(f"{SITE}containers: {{runtime: {runtime}}}\n")
    return str(files / "big.yaml")


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "accelerate"])
def test_the_definition_of_an_image_is_whole(files: Path, launcher: str) -> None:
    (script,) = plain(files / "job.yaml", site(files, "edf"), f"launcher={launcher}", IMAGE)
    (files / "bin" / "srun").write_text(SRUN)
    done = run(files, f"export SLURM_JOB_ID=7\n{script}")
    assert done.returncode == 0, done.stderr
    assert f"arg:--environment={files}/edf-7.toml" in done.stdout
    # A value is passed under another name, so that no quoting of TOML changes it.
    assert "note:it's, a b" in done.stdout
    found = tomllib.loads((files / "edf-7.toml").read_text())
    assert found["base_environment"] == "image.img" and found["writable"] is True
    assert found["workdir"] == str(files)
    assert found["mounts"] == [f"{files}:{files}", "/data/a b:/data/a b"]
    assert found["env"]["NOTE"] == "${OUTSIDE_NOTE}"
    assert {"MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"} <= set(found["env"])


@pytest.mark.parametrize("runtime", ["apptainer", "singularity", "podman-hpc", "shifter", "edf"])
def test_nothing_of_the_tracking_is_passed_into_an_image(files: Path, runtime: str) -> None:
    image = "container={image: image.img}"
    (script,) = plain(files / "job.yaml", site(files, runtime), "launcher=srun", image)
    assert "HPCTRAIN_" not in script


def test_a_variable_that_shifter_cannot_pass_ends_the_job(files: Path) -> None:
    image = "container={image: image.img, env: [MISSING]}"
    (script,) = plain(files / "job.yaml", site(files, "shifter"), "launcher=srun", image)
    done = run(files, script)
    assert done.returncode != 0 and "MISSING" in done.stderr
    assert "|" not in done.stdout
