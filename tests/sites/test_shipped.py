"""The profiles that come with hpctrain: what they say, and on what each value rests."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.base.data_folders import profile_folder
from hpc_train.base.values import Sourced, encode_unit
from hpc_train.sites.load import load_site
from hpc_train.sites.merge import Part, find, lineage, source_of, unknown_covers
from hpc_train.sites.profile import SiteProfile

FOLDER = profile_folder()
PROFILES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
FILES = sorted(FOLDER.rglob("*.yaml"))
# What a file says of itself rests on nothing.
OWN = {"schema", "name", "extends", "description", "operator", "url", "verified_on", "confidence"}
# A site, a launcher or sbatch option, and a word of what the profile says of it.
WARNINGS = (
    ("frontier", "launchers.warned.torchrun", "10 times slower"),
    *(
        ("frontier", f"launchers.warned.{one}", "binding of one task")
        for one in ("accelerate", "deepspeed", "spawn")
    ),
    ("isambard-ai", "launchers.forbidden.mpirun", "not allowed"),
    ("roihu", "launchers.forbidden.mpirun", "srun"),
    ("vista", "forbidden.gres", "partition determines"),
    ("vista", "forbidden.mem", "memory"),
    ("clariden", "forbidden.gres", "gpus-per-task"),
    ("sagemaker-hyperpod", "forbidden.gpus-per-node", "no GRES"),
)


@lru_cache
def loaded(name: str) -> Sourced[SiteProfile]:
    return load_site(str(FOLDER / f"{name}.yaml"))


def said(name: str, key: str) -> Any:
    """Return the value of a key whose lists are addressed by name."""
    site = loaded(name)
    plain = msgspec.json.decode(msgspec.json.encode(site.value, enc_hook=encode_unit))
    return find(Part(plain, site.origins), key)[0]


@pytest.mark.parametrize(("name", "key", "word"), WARNINGS)
def test_what_a_site_refuses_has_its_reason(name: str, key: str, word: str) -> None:
    assert word in said(name, key)


@pytest.mark.parametrize(
    ("name", "word"),
    [("narval", "a100"), ("rorqual", "h100"), ("roihu", "gh200"), ("mahti", "a100")],
)
def test_gpus_are_asked_for_by_type(name: str, word: str) -> None:
    assert said(name, "gpu_request_typed") is True
    types = {partition.gpu_type for partition in loaded(name).value.partitions}
    assert types == {word}


@pytest.mark.parametrize("name", ["delta", "juwels-booster", "lumi-g", "snellius"])
def test_a_job_without_a_partition_does_not_escape_the_facts(name: str) -> None:
    assert said(name, "partition_choice") == "job"


@pytest.mark.parametrize("name", ["frontier", "jean-zay", "leonardo", "marenostrum5", "perlmutter"])
def test_a_list_that_may_not_be_whole_lets_others_pass(name: str) -> None:
    assert loaded(name).value.qos[-1].name == "*"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_every_file_has_sources_that_cover_something(path: Path) -> None:
    own = lineage(path)[0].part.values
    assert own["sources"], "a shipped profile names its sources"
    assert list(unknown_covers(path)) == []


@pytest.mark.parametrize("name", PROFILES)
def test_every_value_rests_on_a_source(name: str) -> None:
    site = loaded(name)
    keys = [key for key in site.origins if key and key.partition(".")[0] not in {*OWN, "sources"}]
    assert len(keys) > 3
    measured = [key for key in keys if site.origins[key] == "this machine"]
    assert [key for key in keys if source_of(site, key) is None] == measured


@pytest.mark.parametrize("name", PROFILES)
def test_no_account_is_made_up(name: str) -> None:
    assert loaded(name).value.account.example is None
