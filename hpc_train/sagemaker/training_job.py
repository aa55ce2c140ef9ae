"""A plan and a profile -> the request CreateTrainingJob; pure.

Fields and limits: service model of SageMaker, API version 2017-07-24. The image starts our own
script, so it needs bash and python, and no toolkit of AWS.
"""

import re
from typing import Any

from hpc_train.base.errors import PlanError, SiteProfileError
from hpc_train.plans.plan import LaunchPlan
from hpc_train.sites.partition import ANY
from hpc_train.sites.profile import SageMaker, SourcedSite

PREFIX = "hpct-"
MARK = "hpctrain:run"
SCRIPT_FILE = "job.sh"
CODE_FILE = "code.tar.gz"
# In a rendered request; a submission has 12 random hexadecimal digits instead.
UNSUBMITTED = "run"
_MARK_LENGTH = 12
_NAME_LENGTH = 63
_INPUT = "/opt/ml/input/data"
_DAY_S = 86400
_IMAGE = "ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG"
# Of the distribution specification: HOST[:PORT]/NAME[:TAG][@DIGEST].
_OF_REGISTRY = re.compile(
    r"\A[a-zA-Z0-9][\w./-]{0,254}(?::\w[\w./-]{0,254}){0,2}(?:@[\w:]{1,254})?\Z"
)


def training_job(
    plan: LaunchPlan,
    site: SourcedSite,
    mark: str = UNSUBMITTED,
    code: str = UNSUBMITTED,
    checkpoints: str = "",
) -> dict[str, Any]:
    """Return the request for a plan; `mark` identifies the run, `code` the archive of its code.

    `checkpoints` is the folder of an earlier job, from which this one resumes.

    Raises:
        PlanError: the job has no image, or what a training job cannot have.
    """
    section, name = _checked(plan, site), job_name(plan.name, mark)
    folder = f"{section.bucket}/{name}"
    checkpoints = checkpoints or f"{folder}/checkpoints" * section.spot
    stopping = {"MaxRuntimeInSeconds": (longest := int(plan.time_s or _DAY_S))}
    if section.spot:
        stopping["MaxWaitTimeInSeconds"] = int(section.max_wait or longest)
    return {
        "TrainingJobName": name,
        "RoleArn": section.role,
        "AlgorithmSpecification": {
            "TrainingImage": _image(plan, section),
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["/bin/bash"],
            "ContainerArguments": [f"{_INPUT}/hpctrain/{SCRIPT_FILE}"],
        },
        "InputDataConfig": [
            _channel("hpctrain", f"{folder}/input/"),
            _channel("code", f"{section.bucket}/code/{code}/"),
            *(_channel(name, uri) for name, uri in section.inputs.items()),
        ],
        "OutputDataConfig": {"S3OutputPath": f"{folder}/output"},
        "ResourceConfig": {
            "InstanceType": plan.settings["partition"].value,
            "InstanceCount": plan.topology.nodes,
            "VolumeSizeInGB": section.volume_gb,
        },
        "StoppingCondition": stopping,
        "Tags": [{"Key": MARK, "Value": mark}, {"Key": "hpctrain:name", "Value": plan.name}],
        # Of a job that is interrupted, or that resumes from an earlier one.
        **({"EnableManagedSpotTraining": True} if section.spot else {}),
        **({"CheckpointConfig": {"S3Uri": checkpoints}} if checkpoints else {}),
    }


def section_of(site: SourcedSite) -> SageMaker:
    """Return the section of a profile that was checked."""
    if site.value.sagemaker is None:
        raise AssertionError("check refuses such a profile")
    return site.value.sagemaker


def job_name(name: str, mark: str) -> str:
    """Return a name that SageMaker accepts: at most 63 letters, digits and single hyphens."""
    room = _NAME_LENGTH - len(PREFIX) - 1 - _MARK_LENGTH
    words = re.sub(r"[^A-Za-z0-9]+", "-", name)[:room].strip("-")
    return f"{PREFIX}{words}-{mark}" if words else f"{PREFIX}{mark}"


def _image(plan: LaunchPlan, section: SageMaker) -> str:
    image = plan.settings.get("container.image")
    return str(image.value) if image else section.image or ""


def _check_image(plan: LaunchPlan, site: SourcedSite, section: SageMaker) -> None:
    """Refuse the file or the address of an image; SageMaker pulls it from a registry."""
    image = _image(plan, section)
    if _OF_REGISTRY.match(image) and not image.endswith((".sif", ".sqsh")):
        return
    own = plan.settings.get("container.image")
    key = "container.image" if own else "sagemaker.image"
    raise PlanError(
        f"{own.origin if own else site.near(key)}: {key}: SageMaker pulls images from a registry, "
        f"and {image!r} is not a name in one",
        f"for example: {_IMAGE}",
    )


def _channel(name: str, uri: str) -> dict[str, Any]:
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": uri,
        "S3DataDistributionType": "FullyReplicated",
    }
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def _checked(plan: LaunchPlan, site: SourcedSite) -> SageMaker:
    section = section_of(site)
    if not _image(plan, section):
        raise PlanError(
            f"{plan.settings['name'].origin}: the job names no image, and SageMaker needs one",
            f"container: {{image: {_IMAGE}}} in the job, or sagemaker.image in the profile",
        )
    _check_image(plan, site, section)
    if plan.secrets:
        name = plan.secrets[0].name
        raise PlanError(
            f"{plan.settings[f'secrets.{name}'].origin}: secrets.{name}: AWS forbids secrets in "
            "the request of a training job",
            "read it in the program, from AWS Secrets Manager, with the role of the job",
        )
    return section


_EXAMPLE = (
    'sagemaker: {region: eu-west-1, role: "arn:aws:iam::123456789012:role/NAME", '
    "bucket: s3://BUCKET/FOLDER}"
)
_PREFIX = "ml."
# Channels of every job: its script, and the archive of its folder.
CHANNELS = ("hpctrain", "code")


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
    for name in CHANNELS:
        if name in section.inputs:
            raise SiteProfileError(
                f"{site.near(f'sagemaker.inputs.{name}')}: sagemaker.inputs: the channel {name!r} "
                "is for hpctrain's own files",
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
