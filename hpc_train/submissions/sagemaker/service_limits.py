"""A request -> the first limit of AWS's service model that it violates.

botocore itself checks required keys, types and minima, but no maxima, patterns or enumerations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from hpc_train.errors import PlanError
from hpc_train.model.plan import LaunchPlan

_MOST_NAMES = 5
_OPERATION = "CreateTrainingJob"
# Field -> the setting that it is made from; others come from the profile or from rules.
_SETTINGS = {
    "AlgorithmSpecification.TrainingImage": "container.image",
    "ResourceConfig.InstanceCount": "nodes",
    "ResourceConfig.InstanceType": "partition",
    "StoppingCondition.MaxRuntimeInSeconds": "time",
}


def check_limits(request: dict[str, Any], plan: LaunchPlan) -> None:
    """Check a request of CreateTrainingJob before it is sent.

    Raises:
        PlanError: the place of the setting, the field, its value, and what is allowed.
    """
    # Costs 0.1 s, and is in an extra.
    import botocore.session

    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model(_OPERATION).input_shape
    for field, problem in _violations(request, shape):
        setting = plan.settings.get(_SETTINGS.get(field, "command"), plan.settings["command"])
        raise PlanError(
            f"{setting.origin}: {_OPERATION}: {field}: {problem}",
            "hpctrain render FILE shows the request",
        )


def _violations(value: Any, shape: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each wrong value, and the reason."""
    kind = shape.type_name
    if kind == "structure":
        yield from _structure(value, shape, place)
    elif kind == "list":
        yield from _size(len(value), shape.metadata, place, "items")
        for index, part in enumerate(value):
            yield from _violations(part, shape.member, f"{place}.{index}")
    elif kind == "map":
        yield from _size(len(value), shape.metadata, place, "entries")
        for key, part in value.items():
            yield from _violations(part, shape.value, f"{place}.{key}")
    elif kind == "string":
        yield from _text(value, shape.metadata, place)
    elif kind in ("integer", "long"):
        yield from _size(value, shape.metadata, place, "")


def _structure(value: dict[str, Any], shape: Any, place: str) -> Iterator[tuple[str, str]]:
    at = f"{place}." if place else ""
    for key, part in value.items():
        if key not in shape.members:
            near = get_close_matches(key, shape.members, n=1)
            yield f"{at}{key}", f"is no field{f'; did you mean {near[0]}?' if near else ''}"
        else:
            yield from _violations(part, shape.members[key], f"{at}{key}")
    for key in sorted(set(shape.required_members) - set(value)):
        yield f"{at}{key}", "is missing"


def _size(size: int, limits: dict[str, Any], place: str, what: str) -> Iterator[tuple[str, str]]:
    unit = f" {what}" if what else ""
    if size > limits.get("max", size):
        yield place, f"{size}{unit}, at most {limits['max']}"
    if size < limits.get("min", size):
        yield place, f"{size}{unit}, at least {limits['min']}"


def _text(text: str, limits: dict[str, Any], place: str) -> Iterator[tuple[str, str]]:
    names = limits.get("enum")
    if names and text not in names:
        near = get_close_matches(text, names, n=_MOST_NAMES) or names[:_MOST_NAMES]
        yield place, f"{text!r} is not one of {len(names)} names; near: {', '.join(near)}"
        return
    yield from _size(len(text), limits, place, "characters")
    pattern = limits.get("pattern")
    # Patterns of AWS: not all are valid for Python, such as `\\p{L}`.
    if pattern and "\\p{" not in pattern and not re.fullmatch(pattern, text, re.DOTALL):
        yield place, f"{text!r} does not match {pattern}"
