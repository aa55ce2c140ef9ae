"""The options of torchrun that the rule knows are those of the installed torchrun."""

from __future__ import annotations

import pytest

from hpc_train.lint.rules.torchrun import OPTIONS


def test_each_option_of_the_installed_torchrun_is_known() -> None:
    run = pytest.importorskip("torch.distributed.run")
    names = {name for action in run.get_args_parser()._actions for name in action.option_strings}
    long = {name[2:].replace("_", "-") for name in names if name.startswith("--")}
    assert "nproc-per-node" in long
    assert long <= set(OPTIONS)
