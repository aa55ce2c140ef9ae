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
