"""A job file that a beginner writes: what it leaves out is filled, asked for or warned of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train.base.data_folders import profile_folder
from tests.cli.conftest import Hpctrain

JOB = "name: train\ncommand: [python, train.py]\nresources: {nodes: 2, gpus_per_node: 4}\n"
# No source names a usual partition of these clouds and centres, so that it is asked for.
ASKED = frozenset(
    """
    aws-parallelcluster azure-cyclecloud coreweave gcp-a3-high gcp-a3-mega gcp-a3-ultra gcp-a4
    nebius oci sagemaker-hyperpod
    abci aurora delta gadi juwels-booster lonestar6 lumi-g marenostrum5 polaris snellius vista
    """.split()
)
SITES = sorted({path.stem for path in profile_folder().glob("*.yaml")} - {"local"})
OTHER = {"delta": "x-delta-gpu", **dict.fromkeys(("fir", "narval", "rorqual"), "def-x")}


@pytest.fixture(autouse=True)
def _job(hpctrain: Hpctrain) -> None:
    Path("job.yaml").write_text(JOB)


@pytest.mark.parametrize("site", SITES)
def test_a_small_job_needs_an_account_and_a_time_at_most(hpctrain: Hpctrain, site: str) -> None:
    account = OTHER.get(site, "project_1")
    done = hpctrain("render", "job.yaml", "--site", site, "--account", account, "--time", "30m")
    if site in ASKED:
        assert done.returncode == 2
        assert "partition" in done.stderr or "qos" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("site", ["perlmutter", "clariden", "lumi-g", "delta", "polaris"])
def test_a_job_without_the_plugin_of_nccl_is_warned_of(hpctrain: Hpctrain, site: str) -> None:
    partitions = {"lumi-g": "standard-g", "delta": "gpuA100x4", "polaris": "preemptable"}
    words = ["render", "job.yaml", "--site", site, "--account", OTHER.get(site, "project_1")]
    words += ["--time", "30m", *(["-p", partitions[site]] if site in partitions else [])]
    said = hpctrain(*words).stderr
    assert "NCCL would stop with 'network AWS Libfabric not found'" in said
    line = "setup=[module load nccl conda aws-ofi-nccl]"
    loaded = hpctrain(*words, "--set", line)
    assert loaded.returncode == 0
    assert "Libfabric" not in loaded.stderr


def test_variables_of_sbatch_then_the_users_defaults_fill_a_job(
    hpctrain: Hpctrain, tmp_path: Path
) -> None:
    config = tmp_path / "config/hpctrain"
    config.mkdir(parents=True)
    (config / "defaults.yaml").write_text(
        "site: lumi-g\nsites:\n  lumi-g: {account: project_1, partition: standard-g}\n"
        "  other: {account: none}\n"
    )
    own = {"XDG_CONFIG_HOME": str(config.parent), "SBATCH_ACCOUNT": "project_2", "SBATCH_QOS": "q"}
    done = hpctrain("render", "job.yaml", **own)
    assert done.returncode == 0, done.stderr
    head = done.stdout.splitlines()
    assert {
        f"#SBATCH --{one}" for one in ("account=project_2", "partition=standard-g", "qos=q")
    } <= {line.partition("  # ")[0] for line in head}
    file = config / "defaults.yaml"
    assert f"hpctrain: site lumi-g ({file}:1)\n" in done.stderr
    filled = (
        f"account project_2 ($SBATCH_ACCOUNT), partition standard-g ({file}:3), qos q ($SBATCH_QOS)"
    )
    assert f"hpctrain: at lumi-g: {filled}\n" in done.stderr
    typed = hpctrain("render", "job.yaml", "-A", "project_3", **own)
    assert "--account=project_3" in typed.stdout
    assert "defaults" not in hpctrain("site", "list", **own).stdout
    (config / "defaults.yaml").write_text("sites: {lumi-g: {acount: x}}\n")
    wrong = hpctrain("render", "job.yaml", **own)
    assert "did you mean 'account'?" in wrong.stderr
    schema = json.loads(hpctrain("render", "--schema", "defaults").stdout)
    assert set(schema["$defs"]["SiteDefaults"]["properties"]) == {
        "account", "partition", "qos", "setup",
    }  # fmt: skip
