"""What surrounds the nodes of a site: file systems, the way out, and how to tell where one is."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.model.container import Line
from hpc_train.model.job import Word
from hpc_train.model.units import Duration
from hpc_train.model.value import Value


class Storage(Value, frozen=True, kw_only=True):
    """One file system, as jobs see it."""

    path: Annotated[Line | None, Meta(description="Where, with variables: $SCRATCH.")] = None
    purge: Annotated[
        Duration | None, Meta(description="Files that nobody used so long are removed.")
    ] = None
    node_local: Annotated[bool, Meta(description="A disk of the node, empty at a start.")] = False
    request: Annotated[
        dict[str, str], Meta(description="sbatch options that a job needs to get it.")
    ] = {}
    note: Annotated[str | None, Meta(description="What else one should know.")] = None


class Internet(Value, frozen=True, kw_only=True):
    """Whether compute nodes reach the outside."""

    access: Annotated[
        Literal["yes", "no", "proxy", "limited"], Meta(description="From compute nodes.")
    ]
    env: Annotated[
        dict[str, str | int | float],
        Meta(description="Set in each job: proxies, or offline switches of libraries."),
    ] = {}
    note: Annotated[str | None, Meta(description="Where downloads are done instead.")] = None


class Detect(Value, frozen=True, kw_only=True):
    """How to tell that this host belongs to the site; one match is enough, more is surer."""

    env: Annotated[
        dict[str, str], Meta(description="Variable -> its value, with * for any letters.")
    ] = {}
    clusters: Annotated[tuple[Word, ...], Meta(description="Slurm's ClusterName.")] = ()
    hosts: Annotated[
        tuple[Word, ...], Meta(description="Whole host names, with * for any letters.")
    ] = ()


class Lifecycle(Value, frozen=True, kw_only=True):
    """What the site does to jobs by itself."""

    requeue: Annotated[
        bool | None, Meta(description="Whether Slurm starts a job again after a lost node.")
    ] = None
    signal_lead: Annotated[
        Duration | None, Meta(description="When before the end the site advises a signal.")
    ] = None
    note: Annotated[str | None, Meta(description="What else one should know.")] = None
