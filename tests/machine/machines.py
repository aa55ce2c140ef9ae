"""What the probe script and Slurm's commands print on machines of several shapes."""

from pathlib import Path

from hpc_train.base.processes import Answer
from hpc_train.machine.probe_script import MARK

FIXTURES = Path(__file__).parent / "fixtures"
SECTIONS = {
    "nvidia": "gpus",
    "nvidia_topology": "topology",
    "cpus": "cpus",
    "numa": "numa",
    "addresses": "addresses",
    "interfaces": "interfaces",
    "ports": "ports",
}
AMD = {"rocm": "rocm"}
SHAPES = ("dgx_a100", "gh200", "a100_reversed", "ls6", "mi250x")
CLUSTERS = ("lab", "mixed")


def fixture(name: str) -> str:
    """Return a file as it was printed."""
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def output(shape: str, **more: str) -> str:
    """Return what the probe script prints on a machine of that shape."""
    amd = shape == "mi250x"
    names = {name: file for name, file in SECTIONS.items() if not (amd and "nvidia" in name)}
    found = {
        name: fixture(f"{shape}.{file}")
        for name, file in (names | (AMD if amd else {})).items()
        if (FIXTURES / f"{shape}.{file}.txt").exists()
    }
    found = {"host": "node1\nx86_64", "interfaces": "", "cpus": "", **found, **more}
    parts = [f"\n{MARK} {name}\n{text}\n{MARK} = 0\n" for name, text in found.items()]
    return "Welcome to the cluster!\n" + "".join(parts)


class Slurm:
    """Answers as the commands of a cluster did; `silent` ones have a problem instead."""

    def __init__(self, cluster: str, **silent: str) -> None:
        self.cluster, self.silent = cluster, silent

    def __call__(self, *argv: str, timeout_s: float = 30.0) -> Answer:
        name = _name(argv)
        if name in self.silent:
            return Answer(text="", problem=self.silent[name])
        if name == "try":
            return Answer(text="srun: Job 1 to start at 2026-08-01T12:00:00")
        file = FIXTURES / f"{self.cluster}.{name}.txt"
        known = file.exists()
        return Answer(text=file.read_text()) if known else Answer(text="", problem="not installed")


def _name(argv: tuple[str, ...]) -> str:
    """Name a question as its fixture is named."""
    if argv[0] == "srun":
        return "mpi" if argv[1:] == ("--mpi=list",) else "try"
    words = {"config": "config", "partition": "partitions", "node": "nodes"}
    words |= {"qos": "qos", "assoc": "associations"}
    return next(words[word] for word in argv if word in words)
