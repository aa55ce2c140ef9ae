"""Tests on programs of the system: skipped with a reason or failing; and a lab that they share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from hpc_train.lab.daemons import search_path
from hpc_train.sites import search
from hpc_train.sites.detection import find_scheduler
from tests.processes import WITH_A_LAB, pytest_xdist_make_scheduler, pytest_xdist_setupnodes

__all__ = ["pytest_xdist_make_scheduler", "pytest_xdist_setupnodes"]

if TYPE_CHECKING:
    from hpc_train.lab.state_file import Lab

# Almost all that is made until the tests are collected stays: to look for garbage in it takes a
# third of that time, in each process.
gc.disable()

# What a shell ignores for nohup, or behind &, no program would notice that is told to end here.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every machine, however slow; HPCTRAIN_FUZZ=1000 draws so many others, and
# with --hypothesis-seed=N always the same others.
settings.register_profile(
    "hpctrain",
    deadline=None,
    derandomize="HPCTRAIN_FUZZ" not in os.environ,
    max_examples=int(os.environ.get("HPCTRAIN_FUZZ", "100")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hpctrain")

# What a job, a launcher, a terminal or a user may have set would change what programs do.
FOREIGN = (
    "COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "HPCTRAIN_", "LOCAL_", "MASTER_",
    "NCCL_", "OMP_", "OMPI_", "PMI", "PRTE_", "RANK", "SACCT_", "SALLOC_", "SBATCH_", "SINFO_",
    "SLURM_", "SQUEUE_", "TORCHELASTIC_", "WORLD_SIZE",
)  # fmt: skip
KEPT = {f"HPCTRAIN_{name}" for name in ("FUZZ", "REQUIRE_SLURM", "SAMPLE_LOGS", "WRITE_GOLDEN")}
for name in [name for name in os.environ if name.startswith(FOREIGN) and name not in KEPT]:
    del os.environ[name]
os.umask(0o022)
# The developers' tools stand beside this Python, whether its environment is active or not.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
)

ROOT = Path(__file__).resolve().parents[1]
Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
Slurm = Callable[..., str]

NEEDS = {
    "browser": {"chromium": "chromium"},
    "latex": {"pdflatex": "texlive-latex-recommended"},
    "modules": {"/usr/share/lmod/lmod/libexec/lmod": "lmod"},
    "mpi": {"mpirun": "openmpi-bin"},
    "ssh": {"sshd": "openssh-server", "ssh": "openssh-client", "rsync": "rsync", "ip": "iproute2"},
    "slurm": {
        "slurmctld": "slurmctld",
        "slurmd": "slurmd",
        "sbatch": "slurm-client",
        "munged": "munge",
        "slurmdbd": "slurmdbd",
        "mariadbd": "mariadb-server",
        "ip": "iproute2",
        "tc": "iproute2",
    },
}


def missing(marker: str) -> str:
    """Return what a marked test lacks here, with the packages that have it; empty if nothing."""
    absent = {
        program: package
        for program, package in NEEDS[marker].items()
        if shutil.which(program, path=search_path()) is None
    }
    if not absent:
        return ""
    packages = " ".join(dict.fromkeys(absent.values()))
    return f"{', '.join(absent)} not found; install {packages}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes run them, begin with what takes longest: the labs, then slow files.

    The last to end would otherwise be one process with a slow file, alone. The files of slower.txt
    are marked: their tests take seconds in all.
    """
    folder = Path(__file__).parent
    slower = {folder / name for name in (folder / "slower.txt").read_text().split()}
    for item in items:
        if item.path in slower:
            item.add_marker(pytest.mark.slower)
    if not hasattr(config, "workerinput"):
        return
    kinds = ("slow", "process", "torch", "browser")
    slow = {item.path for item in items if any(map(item.get_closest_marker, kinds))}

    def rank(item: pytest.Item) -> int:
        for number, beginning in enumerate(WITH_A_LAB):
            if item.nodeid.startswith(beginning):
                return number
        return len(WITH_A_LAB) + (item.path not in slow)

    items.sort(key=rank)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long the tests of each folder took, in seconds of the processes that ran them."""
    seconds: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                folder = "/".join(report.nodeid.split("/")[:2]).partition("::")[0]
                seconds[folder] = seconds.get(folder, 0.0) + report.duration
    terminalreporter.section("seconds by folder")
    for total, folder in sorted(((s, f) for f, s in seconds.items()), reverse=True):
        terminalreporter.write_line(f"{total:8.1f} {folder}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage from here on, but not in what was imported and collected."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "machine" in getattr(item, "fixturenames", ()):
        assert item.nodeid.startswith(WITH_A_LAB), "it would start late, or share a lab"
    for marker in NEEDS:
        reason = missing(marker) if item.get_closest_marker(marker) else ""
        if reason:
            refuse(reason)

    if item.get_closest_marker("gpu") and not any(Path("/dev").glob("nvidia[0-9]*")):
        if os.environ.get("HPCTRAIN_REQUIRE_GPU") == "1":
            pytest.fail("no GPU of NVIDIA here (HPCTRAIN_REQUIRE_GPU=1)", pytrace=False)
        pytest.skip("no GPU of NVIDIA here")


def refuse(reason: str) -> NoReturn:
    """Skip, or fail where nothing may be skipped."""
    if os.environ.get("HPCTRAIN_REQUIRE_SLURM") == "1":
        pytest.fail(f"{reason} (HPCTRAIN_REQUIRE_SLURM=1)", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def no_configuration(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hide the profiles, the templates and the cluster of who runs the tests."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("no-configuration"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("no-cache"))
    if find_scheduler(os.environ)[0] is not None:
        os.environ["HPCTRAIN_SITE"] = "local"


@pytest.fixture(autouse=True)
def _no_lab(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the lab of another test, which runs beside it, from the search for profiles."""
    if request.node.get_closest_marker("slurm") is None:
        monkeypatch.setattr(search, "LAB_FOLDER", Path("/nonexistent"))


@pytest.fixture(scope="session")
def hpctrain(tmp_path_factory: pytest.TempPathFactory) -> Hpctrain:
    """Run `hpctrain lab …`, with a configuration folder of the tests' own."""
    from tests.end_to_end.user import commands

    config = tmp_path_factory.mktemp("config")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HPCTRAIN_", "SLURM_"))}
    environment = {**kept, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(config)}

    def run(
        *words: str, prefix: tuple[str, ...] = (), **extra: str
    ) -> subprocess.CompletedProcess[str]:
        if not prefix:
            return commands().run(("lab", *words), {**environment, **extra})
        return subprocess.run(
            [*prefix, sys.executable, "-m", "hpc_train", "lab", *words],
            capture_output=True,
            text=True,
            env={**environment, **extra},
            timeout=240,
        )

    return run


@pytest.fixture(scope="session")
def machine(hpctrain: Hpctrain) -> Iterator[None]:
    """Make sure that a lab may be made here, and that none of the tests' is left."""
    from hpc_train.lab import state_file

    if os.geteuid() != 0:
        refuse("a lab needs root")
    if state_file.read() is not None:
        refuse("a lab is up on this machine, perhaps somebody's; end it with: hpctrain lab down")
    yield
    done = hpctrain("down")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def lab_with(machine: None, hpctrain: Hpctrain) -> Callable[..., Lab]:
    """Return a function from options of `lab up` to a whole lab; the one that is up, if it can be.

    A process of the tests has one lab at a time: files that need the same one follow each other.
    """
    from hpc_train.lab import state_file

    options: list[tuple[str, ...]] = []

    def started(*words: str) -> Lab:
        found = state_file.read()
        if found is None or options != [words] or state_file.faults(found):
            if found is not None and options != [words]:
                done = hpctrain("down")
                assert done.returncode == 0, done.stderr
            done = hpctrain("up", *words)
            assert done.returncode == 0, done.stderr
            options[:] = [words]
            found = state_file.read()
            assert found is not None
        return found

    return started


@pytest.fixture
def lab(lab_with: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Return a whole lab, and point Slurm's commands at it."""
    return pointed_at(lab_with(), monkeypatch)


@pytest.fixture
def accounting_lab(lab_with: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Return a lab of two nodes with accounting, and point Slurm's commands at it."""
    return pointed_at(lab_with("--nodes", "2", "--accounting"), monkeypatch)


def pointed_at(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Let Slurm's commands, and what the test starts, find a lab."""
    monkeypatch.setenv("SLURM_CONF", f"{lab.settings.folder}/slurm.conf")
    return lab


@pytest.fixture
def no_lab(machine: None, hpctrain: Hpctrain) -> None:
    """Return when there is no lab."""
    done = hpctrain("down")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def slurm() -> Slurm:
    """Run a program of Slurm that has to work; return its output."""

    def run(*argv: str) -> str:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
