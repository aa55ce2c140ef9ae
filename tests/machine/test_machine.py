"""The probe script on this machine, and `doctor` and `site init` where something is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.machine.read_hardware import this_hardware

ROOT = Path(__file__).resolve().parents[2]


def hpctrain(*words: str, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HPCTRAIN_", "SLURM_"))}
    return subprocess.run(
        [sys.executable, "-m", "hpc_train", *words],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), **extra},
        capture_output=True,
        text=True,
        timeout=240,
    )


def program(folder: Path, name: str, *lines: str) -> None:
    """Put a program on a PATH of our own."""
    path = folder / name
    path.write_text("\n".join(("#!/bin/bash", *lines, "")))
    path.chmod(0o755)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return a PATH with what every Linux has, and no torch, Slurm or GPU."""
    folder = tmp_path / "bin"
    folder.mkdir()
    names = "bash cat hostname uname timeout sed grep df readlink lscpu ip"
    for name in names.split():
        found = next(
            (p for d in ("/usr/bin", "/bin", "/usr/sbin") if (p := Path(d, name)).exists()), None
        )
        if found:
            (folder / name).symlink_to(found)
    return folder


def test_this_machine() -> None:
    found = this_hardware()
    assert found.host == os.uname().nodename
    assert found.arch == os.uname().machine
    assert found.processor is not None
    assert found.processor.cpus == os.cpu_count()
    assert "lo" in {link.name for link in found.links}
    assert found.limits.memory_mib and found.limits.open_files
    assert not [said for said in found.unread if "cut off" in said]


def test_doctor_without_slurm_gpus_and_torch(empty: Path, tmp_path: Path) -> None:
    done = hpctrain("doctor", "--json", cwd=tmp_path, PATH=str(empty))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["ok"], said["cluster"]) == (True, None)
    assert (said["hardware"]["gpus"], said["hardware"]["software"]["torch"]) == ([], None)
    plain = hpctrain("doctor", cwd=tmp_path, PATH=str(empty))
    words = [line for line in plain.stdout.splitlines() if line and not line.startswith(" ")]
    assert words[:7] == "slurm launchers torch gpus network limits containers".split()


def test_doctor_fails_where_jobs_cannot_work(empty: Path, tmp_path: Path) -> None:
    program(empty, "nvidia-smi", 'case "$*" in *query*) echo index, name; echo 0, X100;; esac')
    torch = '{"version": "2.9", "backends": ["gloo"]}'
    program(empty, "python", f"echo a warning; echo '{torch}'")
    done = hpctrain("doctor", cwd=tmp_path, PATH=str(empty))
    assert done.returncode == 1, done.stdout
    assert "error: 1 GPUs, but torch 2.9 is built for CPUs only" in done.stdout


def test_a_driver_that_does_not_answer_is_named(empty: Path, tmp_path: Path) -> None:
    words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    program(empty, "nvidia-smi", f'echo "{words}"', "exit 9")
    done = hpctrain("doctor", cwd=tmp_path, PATH=str(empty))
    assert f"could not be read: nvidia-smi: {words}" in done.stdout


def test_site_init_without_slurm(empty: Path, tmp_path: Path) -> None:
    done = hpctrain("site", "init", cwd=tmp_path, PATH=str(empty))
    assert done.returncode == 1
    first, hint = done.stderr.splitlines()
    assert first == "hpctrain: this machine has neither Slurm (scontrol) nor PBS (qstat)"
    assert "hpctrain site init --hosts a,b" in hint
    assert not (tmp_path / "site_profiles").exists()


def test_site_init_with_a_slurm_that_does_not_answer(empty: Path, tmp_path: Path) -> None:
    program(empty, "scontrol", "echo 'error: no configuration source' >&2; exit 1")
    done = hpctrain("site", "init", cwd=tmp_path, PATH=str(empty))
    first, hint = done.stderr.splitlines()
    assert first == "hpctrain: `scontrol show config`: no configuration source"
    assert "set SLURM_CONF if needed" in hint


def test_site_init_replaces_nothing_unasked(tmp_path: Path) -> None:
    (tmp_path / "here.yaml").write_text("mine")
    done = hpctrain("site", "init", "here", "-o", "here.yaml", cwd=tmp_path)
    assert (done.returncode, "exists already" in done.stderr) == (2, True)
    assert (tmp_path / "here.yaml").read_text() == "mine"


def test_site_init_says_that_a_draft_cannot_be_written(empty: Path, tmp_path: Path) -> None:
    answers = Path(__file__).parent / "fixtures"
    kinds = ("config", "partition", "node")
    cases = (f'*" {kind}"*) cat {answers}/lab.{kind.rstrip("s")}*.txt;;' for kind in kinds)
    program(empty, "scontrol", 'case " $*" in', *cases, "*) exit 1;; esac")
    (tmp_path / "file").write_text("mine")
    words = ("site", "init", "here", "-o", "file/here.yaml")
    done = hpctrain(*words, cwd=tmp_path, PATH=str(empty))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "file/here.yaml: cannot be written: " in done.stderr
    assert hpctrain(*words[:3], cwd=tmp_path, PATH=str(empty)).returncode in (0, 3)
    assert [path.name for path in (tmp_path / "site_profiles").iterdir()] == ["here.yaml"]
