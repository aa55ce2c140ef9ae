"""Fabric x nodes x vendor x version -> exactly these variables, and where each comes from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc_train.model.plan import LaunchPlan

TABLE = yaml.safe_load((Path(__file__).parent / "network_variables.yaml").read_bytes())
ALWAYS = {"OMP_NUM_THREADS", "PYTHONUNBUFFERED"}


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_the_fabric_gives_these_variables_and_no_other(
    planned: Callable[..., LaunchPlan], row: dict[str, Any]
) -> None:
    plan = planned(row["network"], row["nodes"], row["gpus"], row["launcher"])
    assert {name: value for name, value in plan.env if name not in ALWAYS} == row["env"]
    assert plan.changes == ()
    for name in row["env"]:
        setting = plan.settings[f"env.{name}"]
        assert setting.why and setting.source
        assert setting.origin in ("rule", "big.yaml")
