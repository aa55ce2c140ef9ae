"""A real lab: jobs over several nodes, two networks, crashes, and nothing left in the end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpc_train.base.data_folders import LAB_FOLDER
from hpc_train.lab import state_file
from hpc_train.lab.daemons import start_time
from hpc_train.lab.state_file import Lab
from hpc_train.sites.load import load_site
from tests.lab.conftest import Hpctrain, Slurm
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]

TRANSFER = """\
import os, socket, sys, time
size = 8 << 20
port = 61234
if os.environ["SLURM_PROCID"] == "1":
    with socket.create_server(("", port)) as server:
        server.settimeout(120)
        peer, _ = server.accept()
        begin, left = time.monotonic(), size
        while left:
            left -= len(peer.recv(1 << 20))
        print(size / 1e6 / (time.monotonic() - begin))
else:
    for _ in range(1200):
        try:
            with socket.create_connection((sys.argv[1], port)) as peer:
                peer.sendall(bytes(size))
            break
        except OSError:
            time.sleep(0.1)
"""


def test_comes_up(no_lab: None, hpctrain: Hpctrain, capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    done = hpctrain("up")
    took = time.monotonic() - begin
    with capsys.disabled():
        sys.stdout.write(f"\nlab of 4 nodes up in {took:.1f} s\n")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "hpctrain submit FILE --site lab" in done.stdout


def test_a_job_runs_on_two_hosts(lab: Lab, slurm: Slurm, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    slurm("sbatch", "-W", "-N2", "-o", str(log), "--wrap", "srun hostname; hostname")
    first, second = sorted(set(log.read_text().split()))
    assert first.startswith("lab")
    assert second.startswith("lab")


def test_pmix_starts_a_step_on_all_nodes(lab: Lab, slurm: Slurm) -> None:
    """Its folder has the name of the step, and would be the same one in a /tmp of all nodes."""
    for node in ("lab1", "lab4"):
        folder = Path(lab.settings.folder, "tmp", node)
        assert folder.stat().st_mode & 0o7777 == 0o1777
    if "mpi: pmix" not in Path(lab.profile).read_text():
        pytest.skip("Slurm finds no PMIx library here (libpmix-dev)")
    ranks = ("srun", "--mpi=pmix", "-N4", "--ntasks-per-node=2", "printenv", "PMIX_RANK")
    assert sorted(slurm(*ranks).split()) == list("01234567")


def test_gpus_are_handed_out(lab: Lab, slurm: Slurm) -> None:
    seen = slurm("srun", "--gpus-per-node=a100:2", "printenv", "CUDA_VISIBLE_DEVICES")
    assert seen.strip() == "0,1"
    refused = subprocess.run(
        ["srun", "--gpus-per-node=5", "true"], capture_output=True, text=True, timeout=240
    )
    assert refused.returncode != 0


def test_ib0_is_much_faster_than_eth0(lab: Lab, slurm: Slurm, tmp_path: Path) -> None:
    script = tmp_path / "transfer.py"
    script.write_text(TRANSFER)
    srun = ("srun", "-w", "lab1,lab2", "--ntasks-per-node=1", sys.executable, str(script))
    slow, fast = (float(slurm(*srun, host)) for host in ("lab2", "lab2i"))
    assert slow < 30
    assert fast > 5 * slow


def test_a_second_up_changes_nothing(lab: Lab, hpctrain: Hpctrain) -> None:
    done = hpctrain("up")
    assert done.returncode == 0
    assert "already running" in done.stdout
    assert state_file.read() == lab


def test_the_profile_is_found_by_name(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    site = load_site("lab")
    assert site.origins["name"].startswith(f"{LAB_FOLDER}/lab.yaml")
    assert site.value.partitions[0].max_nodes == 4


def test_status(lab: Lab, slurm: Slurm, hpctrain: Hpctrain) -> None:
    job = slurm("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600").strip()
    state = json.loads(hpctrain("status", "--json").stdout)
    assert state["up"] is True
    assert [node["name"] for node in state["nodes"]] == ["lab1", "lab2", "lab3", "lab4"]
    assert [(row["id"], row["name"]) for row in state["jobs"]] == [(job, "wrap")]
    assert state["slurm_conf"] == os.environ["SLURM_CONF"]
    assert Path(state["env_file"]).read_text() == f"export SLURM_CONF={state['slurm_conf']}\n"
    assert slurm("sinfo", "--version").split()[1] == state["slurm_version"]
    text = hpctrain("status").stdout
    assert "lab4" in text
    assert f"Slurm: {state['slurm_version']}\n" in text
    assert state["env_file"] in text
    slurm("scancel", job)


@pytest.mark.parametrize("victim", ["slurmd of lab2", "slurmctld"])
def test_a_crashed_lab_is_made_anew(
    lab: Lab, slurm: Slurm, hpctrain: Hpctrain, victim: str
) -> None:
    (pid,) = (daemon.pid for daemon in lab.daemons if daemon.name == victim)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: start_time(pid) is None)
    assert json.loads(hpctrain("status", "--json").stdout)["faults"] == [f"{victim} has ended"]
    done = hpctrain("up")
    assert done.returncode == 0, done.stderr
    assert f"{victim} has ended" in done.stderr
    assert len(set(slurm("srun", "-N4", "hostname").split())) == 4


def test_a_node_that_is_set_down_stays_down(lab: Lab, slurm: Slurm) -> None:
    """Though it answers; slurmctld handles some answers only after seconds."""
    slurm("srun", "-w", "lab1", "true")
    slurm("scontrol", "update", "nodename=lab1", "state=down", "reason=test")
    # From here on, lab2 has the state idle* until its next answer has been handled.
    for state in ("drain", "resume"):
        slurm("scontrol", "update", "nodename=lab2", f"state={state}", "reason=test")
    wait_for(lambda: "lab2 idle\n" in slurm("sinfo", "-h", "-N", "-o", "%N %T"))
    found = slurm("sinfo", "-h", "-n", "lab1", "-o", "%T").split()
    slurm("scontrol", "update", "nodename=lab1", "state=resume")
    assert set(found) == {"down"}


def traces(lab: Lab) -> list[str]:
    """Return what of a lab can be seen on this machine."""
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout
    names = [line.split()[0] for line in links.splitlines()]
    commands = {path: _command(path) for path in Path("/proc").glob("[0-9]*")}
    return [
        *(name for name in names if name.startswith(("hpctlab", "lab"))),
        *state_file.existing_namespaces(),
        *(text for text in commands.values() if lab.settings.folder in text or "4242" in text),
        *(path for path in (lab.settings.folder, lab.profile) if Path(path).exists()),
        *map(str, state_file.RECORD.parent.glob("hpctrain-lab*")),
        *map(str, LAB_FOLDER.parent.glob(LAB_FOLDER.name)),
    ]


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def test_down_leaves_nothing(no_lab: None, hpctrain: Hpctrain, slurm: Slurm) -> None:
    hosts = Path("/etc/hosts").read_bytes()
    assert hpctrain("up", "--nodes", "2").returncode == 0
    lab = state_file.read()
    assert lab is not None
    conf = f"SLURM_CONF={lab.settings.folder}/slurm.conf"
    wrap = "trap '' TERM; srun sleep 4242; sleep 4242"
    slurm("env", conf, "sbatch", "-N2", "-o", "/dev/null", "--wrap", wrap)
    wait_for(lambda: str(traces(lab)).count("sleep 4242") >= 3)
    done = hpctrain("down")
    assert (done.returncode, done.stderr) == (0, "")
    assert traces(lab) == []
    assert Path("/etc/hosts").read_bytes() == hosts
    again = hpctrain("down")
    assert (again.returncode, again.stdout) == (0, "there is no lab\n")
    assert json.loads(hpctrain("status", "--json").stdout) == {
        "schema": 1, "up": False, "twins": [],
    }  # fmt: skip


def test_a_lab_without_its_record_is_removed(no_lab: None, hpctrain: Hpctrain) -> None:
    assert hpctrain("up", "--nodes", "1", "--gpus", "0").returncode == 0
    lab = state_file.read()
    assert lab is not None
    state_file.RECORD.unlink()
    assert hpctrain("down").stdout == f"the lab in {lab.settings.folder} was stopped\n"
    assert traces(lab) == []
