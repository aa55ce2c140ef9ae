"""Blocks: which jobs each key of `when` means, and what becomes of what was there."""

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import EnvChange, LaunchPlan
from tests.cases import cases
from tests.plans.conftest import Jobs, Sites

GPUS = {"nodes": 2, "gpus_per_node": 4, "cpus_per_task": 8}


def block(plan: LaunchPlan) -> bool:
    return dict(plan.env).get("X") == "1"


# when, the profile's keys, the job's keys -> does the block hold?
CASES = cases("plans/env_blocks.yaml", "CASES")


@pytest.mark.parametrize(("when", "site_keys", "job_keys", "holds"), CASES)
def test_a_block_holds_for_the_jobs_it_describes(
    given: Callable[..., LaunchPlan],
    when: dict[str, Any],
    site_keys: dict[str, Any],
    job_keys: dict[str, Any],
    holds: bool,
) -> None:
    plan = given([{"when": when, "env": {"X": "1"}}], site_keys, job_keys)
    assert block(plan) == holds
    assert not any("env_blocks" in text for text in plan.warnings)


@pytest.fixture
def given(job: Jobs, slurm: Sites) -> Callable[..., LaunchPlan]:
    def make(
        blocks: list[dict[str, Any]],
        site_keys: dict[str, Any] | None = None,
        job_keys: dict[str, Any] | None = None,
    ) -> LaunchPlan:
        keys = {"resources": GPUS, **(job_keys or {})}
        return make_plan(job(**keys), slurm(env_blocks=blocks, **(site_keys or {})))

    return make


@pytest.mark.parametrize(
    ("when", "missing"),
    [
        ({"vendor": "amd"}, "the profile does not state network.gpus"),
        ({"partition": "gpu"}, "the job names no partition"),
    ],
)
def test_what_nobody_knows_leaves_a_block_out_with_a_word(
    given: Callable[..., LaunchPlan], when: dict[str, Any], missing: str
) -> None:
    plan = given([{"when": when, "env": {"X": "1"}}])
    assert not block(plan)
    assert plan.warnings == (f"big.yaml: env_blocks.0 is left out, because {missing}",)
    elsewhere = given([{"when": {**when, "nodes": 9}, "env": {"X": "1"}}])
    assert elsewhere.warnings == (), "the block is for other jobs anyway"


def test_a_block_wins_over_the_sites_env_and_a_later_one_over_it(
    given: Callable[..., LaunchPlan],
) -> None:
    blocks = [{"env": {"X": "2", "Y": "2"}, "why": "first"}, {"env": {"Y": "3"}, "source": "page"}]
    plan = given(blocks, {"env": {"X": "1", "Y": "1", "Z": "1"}})
    env = dict(plan.env)
    assert (env["X"], env["Y"], env["Z"]) == ("2", "3", "1")
    assert plan.settings["env.X"].why == "first"
    assert plan.settings["env.Y"].source == "page"
    assert plan.changes == ()


@pytest.mark.parametrize("mode", ["set", "default", "prepend", "append"])
def test_what_the_job_says_nobody_changes(given: Callable[..., LaunchPlan], mode: str) -> None:
    plan = given([{"env": {"X": "site"}, "mode": mode}], {}, {"env": {"X": "job"}})
    assert dict(plan.env)["X"] == "job"
    assert plan.changes == ()


def test_already_set_is_shown_and_not_written(given: Callable[..., LaunchPlan]) -> None:
    blocks = [{"env": {"NCCL_NET": "IB", "X": "1"}, "already_set_by": "module nccl/2.27"}]
    plan = given(blocks, {"network": {"fabric": "infiniband"}, "env": {"X": "0"}})
    assert dict(plan.env).keys() == {"OMP_NUM_THREADS", "PYTHONUNBUFFERED"}
    setting = plan.settings["env.NCCL_NET"]
    assert setting.value == "IB"
    assert setting.why == "set by module nccl/2.27, so the script does not set it"
    again = given([*blocks, {"env": {"X": "2"}}])
    assert dict(again.env)["X"] == again.settings["env.X"].value == "2"


def change(value: str, mode: Any, name: str = "X") -> EnvChange:
    return EnvChange(name=name, value=value, mode=mode)


BEFORE, BEHIND = {"env": {"P": "/a"}, "mode": "prepend"}, {"env": {"P": "/b"}, "mode": "append"}
MODES: list[tuple[list[dict[str, Any]], dict[str, str], tuple[EnvChange, ...]]] = [
    ([{"env": {"X": "2"}, "mode": "default"}], {"X": "1"}, (change("2", "default"),)),
    (
        [BEFORE, BEHIND],
        {"X": "1"},
        (change("/a", "prepend", "P"), change("/b", "append", "P")),
    ),
    ([BEFORE, {"env": {"P": "/b"}}], {"X": "1", "P": "/b"}, ()),
]


@pytest.mark.parametrize(("blocks", "env", "changes"), MODES)
def test_modes(
    given: Callable[..., LaunchPlan],
    blocks: list[dict[str, Any]],
    env: dict[str, str],
    changes: tuple[EnvChange, ...],
) -> None:
    plan = given(blocks, {"env": {"X": "1"}})
    own = {k: v for k, v in plan.env if k not in ("OMP_NUM_THREADS", "PYTHONUNBUFFERED")}
    assert own == env
    assert plan.changes == changes


def test_mpirun_hands_on_what_is_changed(given: Callable[..., LaunchPlan]) -> None:
    blocks = [{"env": {"P": "/a"}, "mode": "prepend"}, {"env": {"D": "1"}, "mode": "default"}]
    plan = given(blocks, {}, {"launcher": "mpirun"})
    words = [getattr(token, "text", "") for token in plan.launch.argv]
    handed_on = [words[i + 1] for i, word in enumerate(words) if word == "-x"]
    assert {"P", "D"} <= set(handed_on)
    assert len(handed_on) == len(set(handed_on))
