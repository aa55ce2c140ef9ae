from __future__ import annotations

import pytest

from tests.conftest import Hpctrain


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--pbs --ssh", "--ssh and --pbs are labs of their own"),
        ("--sagemaker --nodes 3", "--sagemaker starts a lab that has no option --nodes"),
        ("--sagemaker --dir /nope", "no option --dir"),
        ("--ssh --gpus 3", "--ssh starts a lab that has no option --gpus"),
        ("--pbs --eth0-rate 1mbit", "--pbs starts a lab that has no option --eth0-rate"),
    ],
)
def test_a_lab_refuses_the_options_of_another(hpctrain: Hpctrain, words: str, said: str) -> None:
    done = hpctrain("lab", "up", *words.split())
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("hosts", ["", " , "])
def test_a_profile_of_no_host_is_refused(hpctrain: Hpctrain, hosts: str) -> None:
    done = hpctrain("site", "init", "x", "--hosts", hosts)
    assert (done.returncode, "--hosts needs names" in done.stderr) == (2, True), done.stderr
