"""The logs of a run as they grow on its hosts, and their topologies -> its folder here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpc_train.model.run import RunFolder
from hpc_train.regularfile import is_regular
from hpc_train.submissions.hosts.run_on_hosts import fault
from hpc_train.submissions.hosts.started_hosts import StartedHost, StartedHosts
from hpc_train.submissions.hosts.transport import Answer, call

_PATIENCE_S = 300.0
# A host sends at most 8 MiB of each log at once.
_MOST_CALLS = 10_000


def fetch(run: RunFolder, started: StartedHosts) -> bool:
    """Append what each log has grown by; return whether any has.

    Host 0's `job.out` keeps its name, that of another host becomes `job-HOST.out`. Logs of ranks
    have different names on each host. A host that does not answer is left out.

    Raises:
        OSError: a log cannot be written here.
    """
    names = {host.name: rank for rank, host in enumerate(started.hosts)}

    def ask(host: StartedHost) -> Answer:
        sizes = sizes_there(run, host, names[host.name])
        words = (word for pair in sizes.items() for word in pair)
        return call(host.name, "logs", host.folder, *map(str, words), within_s=_PATIENCE_S)

    grown = False
    for host, answer in zip(started.hosts, started.each(ask), strict=True):
        if fault(answer):
            continue
        for name, content in parts(answer.body):
            grown = True
            path = file_here(run, name, host, names[host.name])
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as log:
                log.write(content)
    return grown


def clear(run: RunFolder, started: StartedHosts) -> None:
    """Remove from the hosts what is fetched to its end; a host that does not answer keeps it."""
    names = {host.name: rank for rank, host in enumerate(started.hosts)}

    def ask(host: StartedHost) -> Answer:
        sizes = sizes_there(run, host, names[host.name])
        words = (word for pair in sizes.items() for word in pair)
        return call(host.name, "clear", host.folder, *map(str, words))

    started.each(ask)


def fetch_all(run: RunFolder, started: StartedHosts) -> None:
    """Fetch until no log grows any more; see `fetch`."""
    for _ in range(_MOST_CALLS):
        if not fetch(run, started):
            return


def sizes_there(run: RunFolder, host: StartedHost, rank: int) -> dict[str, int]:
    """Return what is there of each log of a host, by its name on the host."""
    sizes = {}
    for path in filter(is_regular, run.logs.glob("*.out")):
        with suppress(FileNotFoundError):
            sizes[_name_there(path, host, rank)] = path.stat().st_size
    return {name: size for name, size in sizes.items() if name}


def file_here(run: RunFolder, name: str, host: StartedHost, rank: int) -> Path:
    """Return where a log of a host is kept here."""
    return run.logs / (f"job-{host.name}.out" if rank and name == "job.out" else name)


def _name_there(path: Path, host: StartedHost, rank: int) -> str:
    if rank and path.name == "job.out":
        return ""
    return "job.out" if path.name == f"job-{host.name}.out" else path.name


def parts(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the new bytes of each log; each follows a line `log SIZE NAME`."""
    while body.startswith(b"log "):
        line, _, body = body.partition(b"\n")
        _, size, name = line.decode(errors="replace").split(" ", 2)
        content, body = body[: int(size)], body[int(size) :]
        # A name is that of a file in the folder of logs.
        if "/" not in name and len(content) == int(size):
            yield name, content
