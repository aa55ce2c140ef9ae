"""What must be the same in a series: taken from what is recorded, sizes left out."""

import pytest

from hpc_train.runs.conditions import Transport, conditions_of, steady_command
from tests.submissions.runs_of import run


def test_a_run_names_command_commit_site_and_versions() -> None:
    found = conditions_of(run("a"), None)
    assert found["command"] == "python train.py"
    # With changes that nobody recorded; a change in the middle of a study splits nothing.
    assert found["commit"] == "0123456789ab"
    assert (found["site"], found["partition"] if "partition" in found else "") == ("local", "")
    assert found["torch"] == "2.13.0"
    assert found["template"] == "t" * 12
    assert found["container"] == found["modules"] == found["variables"] == "none"


def test_variables_of_the_network_count_and_others_do_not() -> None:
    job = {"env": {"NCCL_ALGO": "Ring", "TORCH_DIST_USE_NCCL2": 1, "LR": 3, "FI_PROVIDER": "cxi"}}
    found = conditions_of(run("a", job), None)
    assert found["variables"] == "FI_PROVIDER=cxi NCCL_ALGO=Ring TORCH_DIST_USE_NCCL2=1"


def test_what_an_axis_sets_is_no_condition() -> None:
    job = {"env": {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL"}}
    axes = {"env.NCCL_ALGO": "Ring", "command.1": "train.py", "torch": "2.13"}
    found = conditions_of(run("a", job, axes=axes), None)
    assert found["variables"] == "NCCL_PROTO=LL"
    assert found["command"] == "python …"
    assert "torch" not in found
    assert "command" not in conditions_of(run("a", axes={"command": []}), None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("t.py --nodes 1 --lr 0.1", "t.py --nodes 16 --lr 0.1"),
        ("t.py --num-gpus=4", "t.py --num-gpus=8"),
        ("t.py --num-gpus=4 --lr 0.1", "t.py --num-gpus=8 --lr 0.1"),
        ("t.py trainer.num_nodes=1 model=x", "t.py trainer.num_nodes=2 model=x"),
        ("t.py --global-batch-size 64", "t.py --global-batch-size 128"),
        ("t.py --output-dir a/1", "t.py --output-dir a/2"),
        ("t.py --gradient-accumulation-steps 8", "t.py --gradient-accumulation-steps 4"),
        ("t.py --rdzv-endpoint a:1 --rdzv_id=1", "t.py --rdzv-endpoint b:2 --rdzv_id=2"),
        ("t.py --master-addr a --lr 0.1", "t.py --master-addr b --lr 0.1"),
        ("t.py +trainer.devices=1", "t.py +trainer.devices=4"),
        ("t.py ++model.data.global_batch_size=8", "t.py ++model.data.global_batch_size=9"),
        ("t.py --data_parallel_shard_degree 2", "t.py --data_parallel_shard_degree 4"),
        ("t.py -b 64 -n 1", "t.py -b 128 -n 2"),
        ("t.py --ckpt-dir a --trial 1", "t.py --ckpt-dir b --trial 2"),
    ],
)
def test_sizes_and_outputs_in_a_command_are_left_out(one: str, other: str) -> None:
    assert steady_command(one.split()) == steady_command(other.split())
    assert "lr 0.1" in steady_command(one.split()) or "lr" not in one


@pytest.mark.parametrize(
    "name",
    [
        "--model-name", "--model_name_or_path", "model.name=", "--dataset-name", "--optimizer-name",
        "--task-name", "--activation-checkpoint-mode", "--tensor-parallel", "--precision",
    ],
)  # fmt: skip
def test_the_name_of_a_model_is_not_the_name_of_a_run(name: str) -> None:
    one, other = (f"t.py {name} {x}".replace("= ", "=").split() for x in ("small", "large"))
    assert steady_command(one) != steady_command(other)


@pytest.mark.parametrize(
    ("command", "axes", "text"),
    [
        ("t.py --nodes 2 --lr 1", (), "t.py --nodes … --lr 1"),
        ("t.py --nodes=2 --lr 1", (), "t.py --nodes=… --lr 1"),
        ("t.py trainer.nodes=2 x", (), "t.py trainer.nodes=… x"),
        ("t.py --nodes --lr 1", (), "t.py --nodes … 1"),
        ("t.py --lr 1 --x 2", ("command.2",), "t.py --lr … --x 2"),
        ("t.py --lr 1", ("command",), ""),
    ],
)
def test_only_the_value_of_a_size_is_left_out(
    command: str, axes: tuple[str, ...], text: str
) -> None:
    assert steady_command(command.split(), frozenset(axes)) == text


@pytest.mark.parametrize("other", ["t.py --tp 2", "t.py --model large", "u.py --tp 1"])
def test_other_words_of_a_command_count(other: str) -> None:
    assert steady_command(["t.py", "--tp", "1"]) != steady_command(other.split())


def test_the_logs_name_nccl_and_plugin() -> None:
    used = Transport(nccl_version=("2.27.5+cuda12.8",), plugins=("libnccl-net.so",))
    found = conditions_of(None, used)
    assert found == {"nccl": "2.27.5+cuda12.8", "plugin": "libnccl-net.so"}
    assert conditions_of(None, Transport(rccl=True, nccl_version=("2.22",))) == {"rccl": "2.22"}
    assert conditions_of(None, Transport()) == conditions_of(None, None) == {}
