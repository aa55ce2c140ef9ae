"""Scripts of the launchers, run with programs that note their words: who the ranks are."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plans.plan import LaunchPlan
from tests.scripts.stubs import SITE, install

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "NOTE", "OMP_NUM_THREADS")
SAY = 'printf "%s|" ' + " ".join(f'"${name}"' for name in NAMES) + ' "$@"'


@pytest.fixture
def big(plan: Plans, execute: Execute, tmp_path: Path) -> Plans:
    """Make plans for a site of its own, with two ranks that say who they are."""
    install(tmp_path / "bin")
    (tmp_path / "image.img").touch()

    def make(extra: str = "", **keys: Any) -> LaunchPlan:
        (tmp_path / "big.yaml").write_text(SITE + extra)
        size = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 3, **keys.pop("size", {})}
        command = keys.pop("command", ["bash", "-c", SAY, "say", "a b", "$x"])
        env = {"NOTE": "it's, a b"}
        return plan(str(tmp_path / "big.yaml"), command=command, resources=size, env=env, **keys)

    return make


def run(execute: Execute, plan: LaunchPlan, folder: Path, **environment: str) -> int:
    (folder / "notes").mkdir(exist_ok=True)
    done = execute(plan, folder, NOTES=str(folder / "notes"), **environment)
    (folder / "said").write_text(done.stdout + done.stderr)
    return done.returncode


def said(folder: Path, rank: int) -> list[str]:
    return (folder / "logs" / f"rank-{rank}.out").read_text().split("|")[:-1]


@pytest.mark.parametrize("launcher", ["srun", "ibrun", "accelerate", "torchrun", "deepspeed"])
def test_each_rank_knows_itself(
    big: Plans, execute: Execute, tmp_path: Path, launcher: str
) -> None:
    assert run(execute, big(launcher=launcher), tmp_path) == 0, (tmp_path / "said").read_text()
    for rank in (0, 1):
        # One rank on each of two nodes, but for the stub of ibrun and srun, which have one node.
        local = "0" if launcher in ("accelerate", "torchrun", "ibrun") else str(rank)
        last = ["a b", "$x"] + ([f"--local_rank={local}"] if launcher == "deepspeed" else [])
        names = [str(rank), local, "2", "localhost", "it's, a b", "3"]
        assert said(tmp_path, rank) == [*names, *last]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("batch-host", "head"),
        ("hostname-ip", "10.0.0.7"),
        ("address:2", "192.168.1.7"),
        ("remote-address:1", "172.16.0.7"),
        ("resolver", "10.9.9.9"),
        ("interface:hsn0", "10.1.2.3"),
    ],
)
def test_each_way_to_rank_0s_address(
    big: Plans, execute: Execute, tmp_path: Path, host: str, address: str
) -> None:
    known = {
        "hostname": "case ${1:-} in -i) echo 127.0.1.1 fe80::1 10.0.0.7 ;; "
        "-I) echo 172.16.0.7 192.168.1.7 ;; *) echo head ;; esac",
        "getent": '[ "$*" = "ahostsv4 localhost" ] && echo "10.9.9.9 STREAM localhost"',
        "ip": '[ "$*" = "-4 -o addr show dev hsn0" ] && echo "2: hsn0 inet 10.1.2.3/24 scope g"',
    }
    job = big(f"rendezvous: {{host: '{host}'}}\n")
    for name, text in known.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    assert run(execute, job, tmp_path) == 0, (tmp_path / "said").read_text()
    assert said(tmp_path, 0)[3] == said(tmp_path, 1)[3] == address
    for name in known:
        (tmp_path / "bin" / name).write_text("#!/bin/bash\nexit 1\n")
    assert run(execute, job, tmp_path) == 1
    assert f"rendezvous.host {host} yields no address" in (tmp_path / "said").read_text()
