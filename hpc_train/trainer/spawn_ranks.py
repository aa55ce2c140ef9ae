"""Starts the ranks of this node as child processes, if the launcher did not start them.

Only the standard library: the parent needs no torch.
"""

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, NoReturn

from hpc_train.trainer import WorkloadError

Main = Callable[[], int]
SPAWNED = "HPCTRAIN_SPAWNED"
GRACE_S = 10.0


def run_ranks(main: Main) -> int:
    """Run `main` as this rank, or as each rank of this node; return the exit code.

    With RANK set, or without LOCAL_WORLD_SIZE, `main` runs in this process. Otherwise
    LOCAL_WORLD_SIZE children run it, with RANK, LOCAL_RANK and WORLD_SIZE set. `main` must be
    importable by name. The first child that fails ends the others; its exit code is returned
    (128 + signal if a signal ended it).

    With HPCTRAIN_LOG_DIR set, child output goes to `rank-<rank>.out` there, appended. With
    HPCTRAIN_FAILURE_FILE set, the first failure writes `rank host exit_code` to that file, unless
    it exists or a signal to the job has left `$HPCTRAIN_FAILURE_FILE.signal`.

    Raises:
        WorkloadError: a variable of the launcher is absent or is not a number in range.
    """
    if "RANK" in os.environ or "LOCAL_WORLD_SIZE" not in os.environ:
        return main()
    return _run_children(main, _environments())


def env_int(name: str, default: int, low: int = 0) -> int:
    """Return the whole number in environment variable `name`, `default` where it is unset.

    Raises:
        WorkloadError: it is not a whole number of at least `low`.
    """
    raw = os.environ.get(name, str(default))
    if not raw.isdecimal() or int(raw) < low:
        raise WorkloadError(f"{name}={raw!r}: must be a whole number of at least {low}")
    return int(raw)


def world_size() -> int:
    """Return the number of ranks of the whole job, as the environment states it.

    Raises:
        WorkloadError: as for `env_int`.
    """
    if "RANK" not in os.environ and "LOCAL_WORLD_SIZE" not in os.environ:
        return 1
    ranks = env_int("LOCAL_WORLD_SIZE", 1, low=1) * env_int("NNODES", 1, low=1)
    return env_int("WORLD_SIZE", ranks, low=1)


def exit_code_of(main: Main) -> int:
    """Run `main`, print an exception as the interpreter does, and return the exit code.

    It is 2 for a WorkloadError, of which one line is printed.
    """
    try:
        return main()
    except WorkloadError as error:
        module = sys.argv[0].rpartition("/")[2].removesuffix(".py")
        print(f"python -m hpc_train.trainer.{module}: error: {error}", file=sys.stderr)
        return 2
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return (stop.code or 0) & 0xFF
        print(stop.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001  # as the interpreter does at the end of a program
        traceback.print_exc()
    return 1


def leave(code: int) -> NoReturn:
    """End this process at once with `code`, without the clean-up of the interpreter.

    Measured with torch 2.13 and gloo: about one process in twenty aborts (code 134) in that
    clean-up, after all its work, so that a successful run would count as failed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _environments() -> list[dict[str, str]]:
    absent = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if absent:
        raise WorkloadError(f"{' and '.join(absent)} must be set when LOCAL_WORLD_SIZE is")
    local, world = env_int("LOCAL_WORLD_SIZE", 1, low=1), world_size()
    first = env_int("NODE_RANK", 0) * local
    if first + local > world:
        raise WorkloadError(
            f"WORLD_SIZE={world}: too small for this node's rank {first + local - 1}"
        )
    return [
        {"RANK": str(first + i), "LOCAL_RANK": str(i), "WORLD_SIZE": str(world), SPAWNED: "1"}
        for i in range(local)
    ]


def _run_children(main: Main, environments: Sequence[dict[str, str]]) -> int:
    # spawn, not fork: CUDA and gloo do not survive a fork.
    context = multiprocessing.get_context("spawn")
    failed_at = context.RawArray("d", len(environments))
    children = [
        context.Process(target=_child, args=(main, environment, failed_at))
        for environment in environments
    ]
    with _ended(children):
        for child in children:
            child.start()
        guilty = _first_failure(children, failed_at)
        if guilty is None:
            return 0
        code = _exit_code(children[guilty])
        _note_failure(environments[guilty]["RANK"], code)
        return code


def _child(main: Main, environment: dict[str, str], failed_at: Any) -> None:
    os.environ.update(environment)
    threading.Thread(target=_follow_parent, daemon=True).start()
    _redirect(environment["RANK"])
    code = exit_code_of(main)
    if code:
        failed_at[int(environment["LOCAL_RANK"])] = time.monotonic()
    leave(code)


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _redirect(rank: str) -> None:
    folder = os.environ.get("HPCTRAIN_LOG_DIR")
    if not folder:
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    log = os.open(os.path.join(folder, f"rank-{rank}.out"), flags, 0o644)  # noqa: PTH118
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _first_failure(children: Sequence[SpawnProcess], failed_at: Sequence[float]) -> int | None:
    running = dict(enumerate(children))
    while running:
        ready = set(wait([child.sentinel for child in running.values()]))
        ended = [i for i, child in running.items() if child.sentinel in ready]
        failures = [i for i in ended if _exit_code(running.pop(i))]
        if failures:
            # If several ended together, the later ones may have failed because they lost a peer.
            # A killed rank has recorded no time, 0, and counts as the first.
            return min(failures, key=lambda i: failed_at[i])
    return None


def _exit_code(child: SpawnProcess) -> int:
    child.join()
    code = child.exitcode or 0
    return code if code >= 0 else 128 - code


def _note_failure(rank: str, code: int) -> None:
    path = os.environ.get("HPCTRAIN_FAILURE_FILE")
    if not path or os.path.exists(f"{path}.signal"):  # noqa: PTH110
        return
    try:
        with open(path, "x") as file:  # noqa: PTH123
            file.write(f"{rank} {socket.gethostname()} {code} {time.time():.3f}\n")
    except FileExistsError:
        pass


@contextmanager
def _ended(children: Sequence[SpawnProcess]) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        started = [child for child in children if child.pid is not None]
        for child in started:
            child.terminate()
        deadline = time.monotonic() + GRACE_S
        for child in started:
            child.join(max(0.0, deadline - time.monotonic()))
            child.kill()
            child.join()
        signal.signal(signal.SIGTERM, before)
