"""The accounting of a lab: MariaDB and slurmdbd, with accounts, QOS and users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hpc_train.lab.daemons import Daemon, launch, wait_for
from hpc_train.lab.run_program import ask, must
from hpc_train.lab.settings import CONTROLLER, Settings
from hpc_train.lab.slurm_conf import slurmdbd_conf
from hpc_train.lab.slurm_programs import slurm

_SETTINGS = (
    "add cluster {name}",
    "add account research",
    "add qos high priority=100 preempt=normal",
    "add user root account=research qos=normal,high",
    # slurmdbd itself adds root to the account root.
    "modify user root set defaultaccount=research",
)


def start_accounting(settings: Settings, remember: Callable[[Daemon], None]) -> None:
    """Start the database and slurmdbd, and add accounts, QOS and users.

    Raises:
        LabError: one of them does not start.
    """
    data, socket = f"{settings.folder}/db", f"{settings.folder}/db/socket"
    must(install_database(data), 60)
    database = launch(settings, CONTROLLER, mariadbd(data, socket))
    remember(database)
    wait_for(settings.folder, database, lambda: answers(socket), 60)
    conf = Path(settings.folder, "slurmdbd.conf")
    conf.write_text(slurmdbd_conf(settings), encoding="utf-8")
    conf.chmod(0o600)
    # slurmdbd has no setting for the socket of its database; the client library reads this one.
    service = launch(settings, CONTROLLER, ("slurmdbd", "-D"), {"MYSQL_UNIX_PORT": socket})
    remember(service)
    asks = slurm(settings, "sacctmgr", "-n", "list", "cluster")
    wait_for(settings.folder, service, lambda: ask(asks).returncode == 0, 60)
    for setting in _SETTINGS:
        must(slurm(settings, "sacctmgr", "-i", *setting.format(name=settings.name).split()))


def install_database(data: str) -> tuple[str, ...]:
    """Return the command that creates an empty database in a folder."""
    return ("mariadb-install-db", "--user=root", f"--datadir={data}", "--skip-test-db")


def answers(socket: str) -> bool:
    """Whether the database answers."""
    return ask(("mariadb-admin", f"--socket={socket}", "--user=root", "ping")).returncode == 0


def mariadbd(data: str, socket: str) -> tuple[str, ...]:
    """Return the command line of a database server that listens only on a Unix socket."""
    return (
        "mariadbd",
        "--no-defaults",
        "--user=root",
        f"--datadir={data}",
        f"--socket={socket}",
        f"--pid-file={data}/mariadb.pid",
        "--skip-networking",
        # slurmdbd requires a long lock timeout; the data need not survive a power failure.
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
    )
