"""Each key of a profile is explained."""

from __future__ import annotations

from hpc_train.pipeline.site.show import site_keys


def test_every_key_is_explained() -> None:
    rows = {key: (allowed, default, meaning) for key, allowed, default, meaning in site_keys()}
    assert len(rows) > 150
    assert [key for key, (*_, meaning) in rows.items() if not meaning.strip()] == []
    assert rows["pbs.project"] == ("-A, -P", "-A", "Option of the project.")
    assert rows["hosts[].gpus"][0] == "0 to 64"
