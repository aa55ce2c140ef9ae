"""submitit's plug-in `hpctrain`: `AutoExecutor(folder, cluster="hpctrain")`.

Programs that submit Python functions use hpctrain's templates, launchers and site profiles.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import PlanError, SpecError
from hpc_train.jobs.job import JobSpec, Resources
from hpc_train.jobs.override import Override
from hpc_train.jobs.read_job import build_job
from hpc_train.plans.build import make_plan
from hpc_train.plans.sample_jobs import is_for_one_node
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SourcedSite
from hpc_train.sites.search import find_profile
from hpc_train.slurm.submitit_function import (
    FunctionEnvironment,
    FunctionExecutor,
    Rendered,
)
from hpc_train.submissions.submission_checks import check_site
from hpc_train.submissions.submit import cluster_of

_ORIGIN = "update_parameters"
_LEFT_OUT = {"command", "resources", "sites"}
_KEYS = {*JobSpec.__struct_fields__, *Resources.__struct_fields__} - _LEFT_OUT


class HpctrainExecutor(FunctionExecutor):
    """Renders a function's job for a site: `hpctrain_site`, or $HPCTRAIN_SITE.

    Its parameters are the keys of a job file, as `hpctrain_launcher`, `hpctrain_account` …, beside
    submitit's shared ones.
    """

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return {*_KEYS, "site"}

    @classmethod
    def _equivalence_dict(cls) -> Any:
        """submitit's shared parameters are used unchanged, except those with another unit."""
        return {key: key for key in ("name", "timeout_min", "mem_gb", *Resources.__struct_fields__)}

    def _convert_parameters(self, params: dict[str, Any]) -> dict[str, Any]:
        # Each rank has one log with both streams.
        return {key: value for key, value in params.items() if key != "stderr_to_stdout"}

    def _internal_update_parameters(self, **kwargs: Any) -> None:
        """Set parameters; refuse unknown keys and, once the site is known, unknown names.

        Whether the job fits the site is checked at its submission, because a further call may
        change it.

        Raises:
            SpecError: an unknown key or a wrong value.
            UnknownNameError: the site, launcher or partition does not exist.
        """
        parameters = {**self.parameters, **kwargs}
        job, site = self._job(parameters, ["true"]), _site_of(parameters)
        if site is not None:
            with suppress(PlanError):
                make_plan(job, load_site(site))
        self.parameters.update(kwargs)

    def _job(self, parameters: dict[str, Any], command: Sequence[str]) -> Any:
        wanted = {key: value for key, value in parameters.items() if key != "site"}
        minutes, gigabytes = wanted.pop("timeout_min", None), wanted.pop("mem_gb", None)
        if minutes is not None:
            wanted["time"] = f"{minutes}m"
        if gigabytes is not None:
            wanted["mem"] = f"{gigabytes}G"
        overrides = [Override(key=k, value=v, origin=_ORIGIN) for k, v in wanted.items()]
        data = {"name": "function", "command": list(command)}
        return build_job(data, {"": _ORIGIN}, overrides, Path("function"))

    def _render(self, command: Sequence[str]) -> Rendered:
        name = _site_of(self.parameters)
        if name is None:
            raise SpecError(
                "no site was given",
                'executor.update_parameters(hpctrain_site="…"), or set HPCTRAIN_SITE',
            )
        profile = find_profile(name)
        site = load_site(profile)
        check_site(site)
        environment = {**self.parameters.get("env", {}), "SUBMITIT_EXECUTOR": self.name()}
        job = self._job({**self.parameters, "env": environment}, command)
        plan = make_plan(job, site)
        if plan.launch.forks_ranks:
            raise SpecError(
                f"launcher {plan.launcher} starts one process per node without RANK; a function "
                "needs one process per rank",
                f"executor.update_parameters(hpctrain_launcher=…): {_with_ranks(site)}",
            )
        return Rendered(
            script=render_script(plan, template_path(profile)),
            world_size=plan.topology.world_size,
            cluster=cluster_of(site.value),
            options=tuple(option for option, _ in plan.directives),
        )


def _with_ranks(site: SourcedSite) -> str:
    """Return the launchers of the site that start one process for each rank."""
    names = site.value.launchers.allowed
    found = ", ".join(name for name in names if not is_for_one_node(name))
    return found or f"{site.value.name} offers none"


def _site_of(parameters: dict[str, Any]) -> str | None:
    return parameters.get("site") or os.environ.get("HPCTRAIN_SITE")


class HpctrainJobEnvironment(FunctionEnvironment):
    """The environment of a function inside a job; its name is that of the executor."""
