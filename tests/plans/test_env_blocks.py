"""Blocks: which jobs each key of `when` means, and what becomes of what was there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import EnvChange, LaunchPlan
from hpc_train.sites.profile import SiteProfile
from tests.cases import cases

Jobs = Callable[..., Sourced[JobSpec]]
Sites = Callable[..., Sourced[SiteProfile]]
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


def test_an_unknown_version_of_nccl_is_no_warning(given: Callable[..., LaunchPlan]) -> None:
    plan = given([{"when": {"nccl": ">=2.27"}, "env": {"X": "^LL128"}}])
    assert (plan.warnings, "X" in dict(plan.env)) == ((), False)
    assert plan.settings["env.X"].why.startswith("left out: it is for NCCL >=2.27, and the profile")


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
@pytest.mark.parametrize("scope", ["job", "ranks", "launcher"])
def test_what_the_job_says_nobody_changes(
    given: Callable[..., LaunchPlan], mode: str, scope: str
) -> None:
    blocks = [{"env": {"X": "site"}, "mode": mode, "scope": scope}, {"unset": ["Y"]}]
    plan = given(blocks, {}, {"env": {"X": "job", "Y": "job"}})
    assert (dict(plan.env)["X"], dict(plan.env)["Y"]) == ("job", "job")
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


def change(name: str, value: str | None, **keys: Any) -> EnvChange:
    return EnvChange(name=name, value=value, **keys)


MODES: list[tuple[list[dict[str, Any]], dict[str, str], tuple[EnvChange, ...]]] = [
    ([{"unset": ["X"]}], {}, (change("X", None),)),
    ([{"unset": ["X"]}, {"env": {"X": "2"}}], {"X": "2"}, ()),
    ([{"unset": ["X"], "scope": "ranks"}], {"X": "1"}, (change("X", None, scope="ranks"),)),
    ([{"env": {"X": "2"}, "mode": "default"}], {"X": "1"}, (change("X", "2", mode="default"),)),
    (
        [{"env": {"P": "/a"}, "mode": "prepend"}, {"env": {"P": "/b"}, "mode": "append"}],
        {"X": "1"},
        (change("P", "/a", mode="prepend"), change("P", "/b", mode="append")),
    ),
    ([{"env": {"P": "/a"}, "mode": "prepend"}, {"env": {"P": "/b"}}], {"X": "1", "P": "/b"}, ()),
    (
        [{"env": {"X": "2"}, "scope": "ranks"}, {"env": {"X": "3"}, "scope": "ranks"}],
        {"X": "1"},
        (change("X", "3", scope="ranks"),),
    ),
    ([{"env": {"X": "2"}, "scope": "ranks"}, {"env": {"X": "3"}}], {"X": "3"}, ()),
    (
        [{"env": {"X": "2"}, "scope": "ranks"}, {"env": {"X": "3"}, "scope": "launcher"}],
        {"X": "1"},
        (change("X", "2", scope="ranks"), change("X", "3", scope="launcher")),
    ),
]


@pytest.mark.parametrize(("blocks", "env", "changes"), MODES)
def test_modes_and_scopes(
    given: Callable[..., LaunchPlan],
    blocks: list[dict[str, Any]],
    env: dict[str, str],
    changes: tuple[EnvChange, ...],
) -> None:
    plan = given(blocks, {"env": {"X": "1"}})
    own = {k: v for k, v in plan.env if k not in ("OMP_NUM_THREADS", "PYTHONUNBUFFERED")}
    assert own == env
    assert plan.changes == changes


def test_a_default_replaces_a_rule_and_not_the_sites_own_value(
    given: Callable[..., LaunchPlan],
) -> None:
    blocks = [{"env": {"NCCL_NET": "mine"}, "mode": "default"}]
    network = {"network": {"fabric": "infiniband"}}
    plan = given(blocks, network)
    assert "NCCL_NET" not in dict(plan.env)
    assert plan.changes == (change("NCCL_NET", "mine", mode="default"),)
    plan = given(blocks, {**network, "env": {"NCCL_NET": "site"}})
    assert dict(plan.env)["NCCL_NET"] == "site"


def test_explain_shows_each_change(given: Callable[..., LaunchPlan]) -> None:
    blocks = [
        {"env": {"P": "/a"}, "mode": "prepend", "why": "w", "source": "s"},
        {"env": {"P": "/b"}, "mode": "prepend", "scope": "ranks"},
        {"env": {"P": "/c"}, "mode": "prepend"},
        {"unset": ["U"]},
    ]
    settings = given(blocks).settings
    first = settings["env.P [prepend]"]
    assert (first.value, first.why, first.source) == ("/a", "w", "s")
    assert settings["env.P [prepend, ranks]"].value == "/b"
    assert settings["env.P [prepend] 2"].value == "/c"
    assert settings["env.U [unset]"].value is None


def test_mpirun_hands_on_what_is_for_the_whole_job(given: Callable[..., LaunchPlan]) -> None:
    blocks = [
        {"env": {"P": "/a"}, "mode": "prepend"},
        {"env": {"D": "1"}, "mode": "default"},
        {"env": {"R": "1"}, "scope": "ranks"},
        {"env": {"L": "1"}, "scope": "launcher"},
        {"unset": ["U"]},
    ]
    plan = given(blocks, {}, {"launcher": "mpirun"})
    words = [getattr(token, "text", "") for token in plan.launch.argv]
    handed_on = [words[i + 1] for i, word in enumerate(words) if word == "-x"]
    assert {"P", "D"} <= set(handed_on)
    assert not {"R", "L", "U"} & set(handed_on)
    assert len(handed_on) == len(set(handed_on))
