"""Host, HostList: machines that ssh reaches, without a scheduler."""

from typing import Annotated

from msgspec import Meta

from hpc_train.model.job import Gpus
from hpc_train.model.value import Value

# ssh would take a name that begins with `-` for an option.
HOST_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,252}$(?!\n)"
HostName = Annotated[
    str,
    Meta(pattern=HOST_NAME, description="Its name for ssh, such as a Host of ~/.ssh/config."),
]
Address = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9:][A-Za-z0-9_.:-]{0,252}$(?!\n)",
        description="Address at which the ranks of the other hosts reach it; default: its name.",
    ),
]


class Host(Value, frozen=True, kw_only=True):
    """A machine: its name for ssh, its address for ranks, and the number of its GPUs."""

    name: HostName
    address: Address | None = None
    gpus: Annotated[
        Gpus | None, Meta(description="Its GPUs; default: the partition's gpus_per_node.")
    ] = None

    @property
    def reached(self) -> str:
        """Return the address for ranks."""
        return self.address or self.name


Hosts = Annotated[tuple[Host, ...], Meta(description="The machines of the scheduler `hosts`.")]
SharedFolders = Annotated[
    bool, Meta(description="All hosts see the folders of runs and jobs, at the same paths.")
]
RemoteFolder = Annotated[
    str,
    Meta(
        pattern=r"^(~|~?/[^\x00-\x1f\x7f]+)$(?!\n)",
        description="Folder on each host for the files of runs, unless `shared`: ~/hpctrain.",
    ),
]


class HostList(Value, frozen=True, kw_only=True):
    """The machines of a plan, in the order of the profile.

    With `shared`, all of them see the run folder and the working folder of the submission at the
    same paths. Otherwise hpctrain copies files to `workdir` on each, which may begin with `~`.
    """

    hosts: tuple[Host, ...]
    shared: bool
    workdir: str
