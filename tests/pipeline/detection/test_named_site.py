"""A site that is named wrongly, on the command line or in the environment."""

from __future__ import annotations

import pytest

from hpc_train.errors import HpcTrainError
from hpc_train.pipeline.detection.default_site import choose_site, load_choice


@pytest.mark.parametrize("name", ["nope", "./nope.yaml"])
def test_a_wrong_name_of_the_environment_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HPCTRAIN_SITE", name)
    with pytest.raises(HpcTrainError, match="nope") as error:
        load_choice(choose_site(None))
    assert error.value.hint.startswith("the site is that of the environment variable HPCTRAIN_SITE")
    with pytest.raises(HpcTrainError, match="nope") as error:
        load_choice(choose_site(name))
    assert "environment" not in error.value.hint
