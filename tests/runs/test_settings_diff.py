from pathlib import Path
from typing import Any

import msgspec

from hpc_train.plans.plan import EnvChange
from hpc_train.runs.conditions import HIDDEN, differences
from hpc_train.runs.run import Run
from hpc_train.runs.run_states import runs_below

STUDY = Path(__file__).parents[2] / "results/studies/digits-two-cores"
NOTHING: list[list[dict[str, str]]] = [[], []]


def runs(launcher: str) -> list[Run]:
    own = [run for run in runs_below(STUDY) if f"-{launcher}-" in run.folder.run_id]
    assert len(own) == 6
    return own


def changed(run: Run, **fields: Any) -> Run:
    assert run.manifest is not None
    plan = msgspec.structs.replace(run.manifest.plan, **fields)
    return msgspec.structs.replace(run, manifest=msgspec.structs.replace(run.manifest, plan=plan))


def test_only_what_differs_is_named_and_never_the_sizes() -> None:
    assert differences(runs("torchrun"), runs("torchrun")[:3], NOTHING) == ()
    found = differences(runs("torchrun"), runs("spawn"), NOTHING)
    assert ("launcher", "torchrun", "spawn") in found
    assert not {"nodes", "tasks_per_node", "name"} & {name for name, _, _ in found}


def test_env_directives_and_modules_are_compared_and_long_values_cut() -> None:
    (one, *_) = runs("spawn")
    other = changed(
        one,
        env=(("NCCL_ALGO", "Ring" * 40),),
        directives=(("exclusive", ""), ("nodes", "7")),
        modules=("cuda/12", "nccl"),
    )
    found = {name: (a, b) for name, a, b in differences([changed(one, env=())], [other], NOTHING)}
    assert found["modules"] == ("--", "cuda/12 nccl")
    assert found["sbatch exclusive"] == ("--", "(set)")
    assert "sbatch nodes" not in found
    of_pbs = changed(one, scheduler="pbs", directives=(("q", "gpu"),))
    assert ("qsub q", "--", "gpu") in differences([one], [of_pbs], NOTHING)
    a, b = found["env.NCCL_ALGO"]
    assert a == "--"
    assert len(b) == 60
    assert b.endswith("…")


def test_secrets_are_never_shown() -> None:
    (one, *_) = runs("spawn")
    sides = [
        [changed(one, env=(("WANDB_API_KEY", f"0123456789abcdef{i}"), ("URL", url)))]
        for i, url in enumerate(("https://a:hunter22@host", "https://host"))
    ]
    found = differences(sides[0], sides[1], NOTHING)
    assert ("env.WANDB_API_KEY", HIDDEN, HIDDEN) in found
    assert "hunter22" not in str(found)
    assert "0123456789abcdef" not in str(found)


def test_conditions_that_one_side_does_not_record_are_no_difference() -> None:
    a = [{"torch": "2.12", "gpu": "A100"}, {"torch": "2.12", "gpu": "A100"}]
    found = differences((), (), [a, [{"torch": "2.13"}, {}]])
    assert found == (("torch", "2.12", "2.13"),)


def facts(run: Run, **provenance: Any) -> Run:
    assert run.manifest is not None
    own = msgspec.structs.replace(run.manifest, provenance=provenance)
    return msgspec.structs.replace(run, manifest=own)


def test_packages_code_and_machine_are_compared() -> None:
    one = runs("spawn")[0]
    sides = [
        facts(
            one, packages={"torch": torch, "numpy": "2.1"}, git={"commit": commit, "dirty": dirty},
            **dict.fromkeys(("hpctrain", "python", "host", "kernel", "cpu"), torch), other=torch,
        )
        for torch, commit, dirty in (("2.8", "abc", False), ("2.9", "def", True))
    ]  # fmt: skip
    found = differences(sides[:1], sides[1:], NOTHING)
    assert found == (
        ("code commit", "abc", "def"),
        ("code dirty", "false", "true"),
        *((name, "2.8", "2.9") for name in ("cpu", "host", "hpctrain", "kernel", "python")),
        ("packages.torch", "2.8", "2.9"),
    )


def test_a_variable_that_the_job_changes_has_its_changed_value() -> None:
    one = runs("spawn")[0]
    variables = (("A", "1"), ("B", "1"))
    changes = (EnvChange(name="A", value="2"),)
    found = differences(
        [changed(one, env=variables)], [changed(one, env=variables, changes=changes)], NOTHING
    )
    assert found == (("env.A", "1", "2"),)
