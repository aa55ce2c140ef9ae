"""A job file that a beginner writes: what it leaves out is filled, asked for or warned of."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

JOB = "name: train\ncommand: [python, train.py]\nresources: {nodes: 2, gpus_per_node: 4}\n"


@pytest.fixture(autouse=True)
def _job(hpctrain: Hpctrain) -> None:
    Path("job.yaml").write_text(JOB)


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
