"""A profile from the answers of a PBS: limits, routes, nodes, and what stays unknown."""

import json
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import ProbeError
from hpc_train.base.processes import Answer
from hpc_train.machine.draft_profile import draft_pbs
from hpc_train.machine.drift import compare_pbs
from hpc_train.pbs.live_pbs import LivePbs, queue_limits, read_pbs, starters
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from tests.slurm.fake_slurm import programs

# Shapes of PBS Professional 2022.1; names and numbers are invented.
ANSWERS = Path(__file__).parent / "pbs_answers"
FILES = {"-B": "server", "-Q": "queues", "-a": "nodes"}
KEYS = {"server": "Server", "queues": "Queue", "nodes": "nodes"}


def as_text(name: str) -> str:
    """Write a recorded answer as PBS does without `-F json`."""
    found = json.loads((ANSWERS / f"{name}.json").read_text())[KEYS[name]]
    head = "" if name == "nodes" else f"{KEYS[name]}: "
    rows = []
    for one, attributes in found.items():
        rows.append(f"{head}{one}")
        version = {"pbs_version": "2022.1.5"} if name == "server" else {}
        for key, value in {**attributes, **version}.items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            for part, text in parts:
                whole = f"    {key}{'.' if part else ''}{part} = {text}"
                rows.append(f"{whole[:40]}\n\t{whole[40:]}" if len(whole) > 40 else whole)
        rows.append("")
    return "\n".join(rows)


def answer(*argv: str, timeout_s: float) -> Answer:
    return Answer(text=as_text(FILES[argv[1]]))


def drafted(tmp_path: Path, pbs: LivePbs, *programs: str) -> tuple[str, SiteProfile]:
    text = draft_pbs("demo", "2026-11-27", pbs, programs)
    path = tmp_path / "demo.yaml"
    path.write_text(text)
    return text, load_site(str(path)).value


def test_limits_and_nodes_of_queues(tmp_path: Path) -> None:
    text, site = drafted(tmp_path, read_pbs(answer), "mpiexec", "pbs_tmrsh")
    queues = {one.name: one for one in site.partitions}
    assert list(queues) == ["main", "debug", "cpu"]
    main, debug, cpu = queues.values()
    assert (main.default, main.min_nodes, main.max_nodes) == (True, None, 3)
    assert "max_nodes: 3  # the limit of the queue is 496" in text
    assert "# at least 10 nodes of a job" in text
    assert (str(main.max_time), str(main.min_time)) == ("1-00:00:00", "00:05:00")
    assert str(main.default_time) == "00:30:00"
    assert main.description == "routes jobs to small, large"
    assert (main.nodes, main.cpus_per_node, main.gpus_per_node) == (3, 64, 4)
    assert main.gpu_model == "A100"
    assert main.shared is False
    assert (debug.nodes, debug.cpus_per_node, debug.gpus_per_node) == (1, 64, 4)
    assert (debug.max_nodes, str(debug.default_time)) == (1, "00:10:00")
    assert (cpu.gpus_per_node, cpu.max_time) == (0, None)
    assert "closed queues: old" in text
    assert "1 node: 64 cores, 4 GPUs, 1030610 MiB" in text
    assert "a node has several vnodes" in text


def test_a_draft_agrees_with_its_server(tmp_path: Path) -> None:
    pbs = read_pbs(answer)
    drafted(tmp_path, pbs)
    site = load_site(str(tmp_path / "demo.yaml"))
    drift = compare_pbs(site, pbs)
    # Of the route: name, nodes, both times of a job, the default time and the default queue.
    assert (drift.differences, drift.compared) == ((), 12)
    partitions = list(site.value.partitions)
    for limit, count in ((496, 0), (3, 0), (4, 1)):
        partitions[0] = msgspec.structs.replace(partitions[0], max_nodes=limit)
        value = msgspec.structs.replace(site.value, partitions=tuple(partitions))
        found = compare_pbs(msgspec.structs.replace(site, value=value), pbs).differences
        assert len(found) == count


@pytest.mark.parametrize(("large", "most"), [({"ngpus": "64"}, 64), ({}, None)])
def test_a_route_has_the_most_gpus_of_its_destinations(
    large: dict[str, str], most: int | None
) -> None:
    pbs, added = read_pbs(answer), {"small": {"ngpus": "8"}, "large": large}
    queues = tuple(
        msgspec.structs.replace(one, most={**one.most, **added.get(one.name, {})})
        for one in pbs.queues
    )
    changed = msgspec.structs.replace(pbs, queues=queues)
    assert queue_limits(changed, next(one for one in queues if one.destinations)).max_gpus == most


def test_what_pbs_does_not_say_is_a_question(tmp_path: Path) -> None:
    text, site = drafted(tmp_path, read_pbs(answer))
    assert site.account.required is False
    assert "# account: {required: true}  # must a job name a project?" in text
    assert "# chunk: {system: demo}" in text
    assert "which of home,eagle?" in text
    assert "the server keeps finished jobs for 336:00:00" in text
    assert "no pbs_tmrsh here" in text
    assert site.launchers.allowed == ("torchrun", "spawn", "single")


def test_a_server_without_nodes_says_so(tmp_path: Path) -> None:
    def without_nodes(*argv: str, timeout_s: float) -> Answer:
        if argv[0] == "pbsnodes":
            return Answer(text="", problem="Unauthorized Request")
        return answer(*argv, timeout_s=timeout_s)

    pbs = read_pbs(without_nodes)
    assert pbs.unread == ("could not be read: pbsnodes -a: Unauthorized Request",)
    text, site = drafted(tmp_path, pbs)
    assert site.partitions[0].cpus_per_node is None
    assert "pbsnodes shows no node of this queue" in text


def test_a_server_that_does_not_answer_is_an_error() -> None:
    def silent(*argv: str, timeout_s: float) -> Answer:
        return Answer(text="", problem="cannot connect to server pbs (errno=111)")

    with pytest.raises(ProbeError, match="`qstat -B -f`: cannot connect to server"):
        read_pbs(silent)


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("mpiexec (OpenRTE) 4.1.4", ["mpirun"]),
        ("mpiexec (Open MPI) 5.0.7", ["mpirun"]),
        ("mpiexec version 1.2.12 revision 5e3b5c", ["mpiexec", "mpirun"]),
    ],
)
def test_mpiexec_of_open_mpi_is_not_that_of_cray(
    version: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = programs(tmp_path / "bin", monkeypatch)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    make("mpirun", "")
    make("mpiexec", "")
    assert starters(lambda *argv, timeout_s: Answer(text=version)) == found
