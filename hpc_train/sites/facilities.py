"""Facilities of a site: accounts, file systems, internet access, its hosts and their detection."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.units import Duration
from hpc_train.base.value import Value
from hpc_train.jobs.container import OneLine
from hpc_train.jobs.job import Gpus, OneWord

_ANY = "project"
# Sample texts for the elements of a simple pattern: project_[0-9]+, (def|rrg)-.+
_SIGNS = (
    (r"\(([^|)]*)[^)]*\)", r"\1"),
    (r"(\[0-9\]|\\d)[+*]?", "1"),
    (r"\.[+*]|\[a-z\][+*]?", "x"),
)
PluginOption = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$(?!\n)",
        description="A long option without its dashes: image.",
    ),
]
PluginOptions = Annotated[
    dict[PluginOption, Literal["value", "optional", "none"]],
    Meta(
        description=(
            "Option of sbatch and srun that a plug-in of the site (SPANK) adds -> whether it "
            "takes a value; optional: only after =."
        )
    ),
]


class Account(Value, frozen=True, kw_only=True):
    """Accounting rules of the site."""

    required: Annotated[bool, Meta(description="Whether a job must name one.")] = False
    pattern: Annotated[str | None, Meta(description="Regular expression of accounts.")] = None
    example: Annotated[str | None, Meta(description="Example of an account, for messages.")] = None
    command: Annotated[
        OneLine | None, Meta(description="Command that prints the user's accounts.")
    ] = None


S3Uri = Annotated[
    str,
    Meta(
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\x00-\x20\x7f]+)?$(?!\n)",
        description="s3://BUCKET or s3://BUCKET/FOLDER.",
    ),
]
Region = Annotated[str, Meta(pattern=r"^[a-z]{2}(-[a-z]{2,12}){1,3}-\d{1,2}$(?!\n)")]
Channel = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$(?!\n)", description="Its name: letters, digits, ._-"),
]


class SageMaker(Value, frozen=True, kw_only=True):
    """What the training jobs of an account have in common; the instance type is the partition."""

    region: Annotated[
        Region | None,
        Meta(description="Region of the jobs: eu-west-1; default: that of the shell."),
    ] = None
    role: Annotated[
        str,
        Meta(
            pattern=r"^arn:aws[a-z-]{0,20}:iam::\d{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$(?!\n)",
            description="Role of the jobs: arn:aws:iam::123456789012:role/NAME.",
        ),
    ]
    bucket: Annotated[S3Uri, Meta(description="Where code and results are: s3://BUCKET/FOLDER.")]
    image: Annotated[
        OneLine | None, Meta(description="Image of jobs without `container`, as in a registry.")
    ] = None
    inputs: Annotated[
        dict[Channel, S3Uri], Meta(description="Channel -> data: {train: s3://bucket/imagenet}.")
    ] = {}
    volume_gb: Annotated[
        int, Meta(ge=1, le=16384, description="Disk of an instance, GB, where it has none.")
    ] = 30
    spot: Annotated[
        bool, Meta(description="Whether jobs use spare capacity, which may be taken away.")
    ] = False
    max_wait: Annotated[
        Duration | None,
        Meta(description="With spot: longest time from the submission to the end of a job."),
    ] = None
    max_pending: Annotated[
        Duration | None, Meta(description="Longest wait for capacity, from 30m to 28d.")
    ] = None


class Storage(Value, frozen=True, kw_only=True):
    """One file system, as jobs see it."""

    path: Annotated[OneLine | None, Meta(description="Path, with variables: $SCRATCH.")] = None
    purge: Annotated[
        Duration | None, Meta(description="Files that were not used for this time are removed.")
    ] = None
    node_local: Annotated[
        bool, Meta(description="A local disk of the node, empty at the start of a job.")
    ] = False
    request: Annotated[
        dict[str, str], Meta(description="sbatch options that a job needs to get it.")
    ] = {}
    note: Annotated[str | None, Meta(description="Further information.")] = None


class Internet(Value, frozen=True, kw_only=True):
    """Whether compute nodes have internet access."""

    access: Annotated[
        Literal["yes", "no", "proxy", "limited"],
        Meta(description="Internet access from compute nodes."),
    ]
    env: Annotated[
        dict[str, str | int | float],
        Meta(description="Variables set in each job: proxies, or offline options of libraries."),
    ] = {}
    note: Annotated[str | None, Meta(description="Where to download instead.")] = None


class Detect(Value, frozen=True, kw_only=True):
    """Rules that detect the site's hosts; one match suffices."""

    env: Annotated[
        dict[str, str], Meta(description="Variable -> its value, with * for any letters.")
    ] = {}
    clusters: Annotated[tuple[OneWord, ...], Meta(description="Slurm's ClusterName.")] = ()
    hosts: Annotated[
        tuple[OneWord, ...], Meta(description="Whole host names, with * for any letters.")
    ] = ()


class Lifecycle(Value, frozen=True, kw_only=True):
    """Actions of the site on jobs."""

    requeue: Annotated[
        bool | None, Meta(description="Whether Slurm requeues a job after the loss of a node.")
    ] = None
    signal_lead: Annotated[
        Duration | None,
        Meta(description="Time before the end at which the site recommends a signal."),
    ] = None
    forget_nodes_after: Annotated[
        Duration | None,
        Meta(description="Time after which a failure says nothing of its node; default: 7d."),
    ] = None
    note: Annotated[str | None, Meta(description="Further information.")] = None


class PbsDialect(Value, frozen=True, kw_only=True):
    """What differs between sites with PBS: how a job requests nodes and names its project."""

    project: Annotated[Literal["-A", "-P"], Meta(description="Option of the project.")] = "-A"
    shape: Annotated[
        Literal["select", "flat"],
        Meta(description="Nodes as chunks (-l select=2:ncpus=8), or totals (-l ncpus=16)."),
    ] = "select"
    chunk: Annotated[
        dict[str, str | int], Meta(description="More resources of each chunk: {system: polaris}.")
    ] = {}
    place: Annotated[
        Literal["scatter", "vscatter", "pack", "free"] | None,
        Meta(description="-l place=...; default: scatter, without which PBS packs the chunks."),
    ] = None
    live_output: Annotated[
        bool, Meta(description="Output is written to its file while the job runs (-k doe).")
    ] = True
    starter: Annotated[
        Literal["tmrsh", "pals", "openmpi"],
        Meta(
            description="What starts a process on each node, such as torchrun: PBS's pbs_tmrsh, "
            "the mpiexec of Cray PALS, or the mpirun of Open MPI."
        ),
    ] = "tmrsh"


def sample_account(account: Account) -> str:
    """Return the site's example of an account, else a text that matches its pattern."""
    if account.example:
        return account.example
    pattern = text = account.pattern or ""
    for sign, word in _SIGNS:
        text = re.sub(sign, word, text)
    return text if text and re.fullmatch(pattern, text) else _ANY


# ssh would take a name that begins with `-` for an option.
HOST_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,252}$(?!\n)"
HostName = Annotated[
    str,
    Meta(
        pattern=HOST_NAME,
        description="Its name for ssh, such as a Host of ~/.ssh/config: letters, digits, ._@-",
    ),
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
