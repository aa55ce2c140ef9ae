"""Checks of a profile whose scheduler is SageMaker."""

from __future__ import annotations

from hpc_train.errors import SiteProfileError
from hpc_train.model.partition import ANY
from hpc_train.model.site import SourcedSite

_EXAMPLE = (
    'sagemaker: {region: eu-west-1, role: "arn:aws:iam::123456789012:role/NAME", '
    "bucket: s3://BUCKET/FOLDER}"
)
_PREFIX = "ml."
# Channels of every job: its script, and the archive of its folder.
CHANNELS = ("hpctrain", "code")
# MaxPendingTimeInSeconds of the service.
_PENDING_S = (1800, 28 * 86400)


def check(site: SourcedSite) -> None:
    """Check the section `sagemaker`, and that each partition is an instance type.

    Raises:
        SiteProfileError: with file:line and the form that is allowed.
    """
    section = site.value.sagemaker
    if section is None:
        raise SiteProfileError(
            f"{site.near('scheduler')}: scheduler sagemaker needs the section `sagemaker`", _EXAMPLE
        )
    if section.max_wait is not None and not section.spot:
        raise SiteProfileError(
            f"{site.near('sagemaker.max_wait')}: sagemaker.max_wait is for spare capacity only",
            "add spot: true, or leave max_wait out",
        )
    if section.max_pending is not None:
        least, most = _PENDING_S
        if not least <= section.max_pending <= most:
            raise SiteProfileError(
                f"{site.near('sagemaker.max_pending')}: sagemaker.max_pending is "
                f"{section.max_pending}: SageMaker takes 30m to 28d",
                "max_pending: 1h",
            )
    for name in CHANNELS:
        if name in section.inputs:
            raise SiteProfileError(
                f"{site.near(f'sagemaker.inputs.{name}')}: sagemaker.inputs: the channel {name!r} "
                "is that of hpctrain's own files",
                "another name for the data: {train: s3://BUCKET/FOLDER}",
            )
    _check_partitions(site)


def _check_partitions(site: SourcedSite) -> None:
    names = [one.name for one in site.value.partitions]
    if not names:
        raise SiteProfileError(
            f"{site.near('scheduler')}: scheduler sagemaker needs `partitions`: instance types",
            "partitions: [{name: ml.g5.xlarge, default: true, gpus_per_node: 1, max_nodes: 2}]",
        )
    for index, name in enumerate(names):
        if name == ANY or not name.startswith(_PREFIX):
            near = f"; did you mean {_PREFIX + name!r}?" if "." in name else ""
            raise SiteProfileError(
                f"{site.near(f'partitions.{index}.name')}: partitions: {name!r} is no instance "
                f"type of training jobs{near}",
                f"they begin with {_PREFIX}: ml.g5.xlarge",
            )
