"""The search path of profiles: the order of its folders, and the layer of each file."""

from pathlib import Path

import pytest

from hpc_train.base.data_folders import profile_folder
from hpc_train.base.errors import SiteProfileError, UnknownNameError
from hpc_train.sites.load import Machine, load_site
from hpc_train.sites.search import (
    files_named,
    find_profile,
    label_of,
    layer_at,
    layer_of,
    profile_files,
    search_path,
)

PROFILE = "schema: 1\nname: mine\nscheduler: slurm\n"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the folders of the search path that a user may write, in its order."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPCTRAIN_SITE_PATH", f"{tmp_path}/first:{tmp_path}/second")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    roots = [Path(), *(tmp_path / name for name in ("first", "second", "config/hpctrain"))]
    places = [place for root in roots for place in (root, root / "site_profiles")]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    return places


def test_the_first_file_of_the_path_is_found_and_families_are_behind_profiles(
    folders: list[Path],
) -> None:
    assert search_path()[: len(folders)] == tuple(folders)
    assert search_path()[-1] == profile_folder()
    written = []
    for folder in folders:
        (folder / "families").mkdir()
        for file in (folder / "mine.yaml", folder / "families" / "mine.yaml"):
            file.write_text(PROFILE)
            written.append(file)
    assert list(files_named("mine")) == written
    for file in written:
        assert find_profile("mine") == file
        file.unlink()
    with pytest.raises(UnknownNameError, match="unknown site 'mine'"):
        find_profile("mine")


@pytest.mark.parametrize("name", ["a/mine", "mine.yaml", "mine.yml"])
def test_a_path_is_no_name(folders: list[Path], name: str) -> None:
    with pytest.raises(SiteProfileError, match="no such file of a site profile"):
        find_profile(name)


@pytest.mark.parametrize(
    ("text", "is_profile"),
    [
        (PROFILE, True), ("schema: 1\nextends: x\n", True), ("schema: 1\nname: mine\n", False),
        ("scheduler: slurm\n", False), ("a: {", False),
    ],
)  # fmt: skip
def test_only_in_this_folder_a_profile_is_known_by_its_keys(
    folders: list[Path], text: str, *, is_profile: bool
) -> None:
    (folders[0] / "mine.yaml").write_text(text)
    (folders[2] / "other.yaml").write_text(text)
    names = [path.stem for path in profile_files()]
    assert ("mine" in names, "other" in names) == (is_profile, True)
    assert names == sorted(names)


def test_the_layer_of_a_file(folders: list[Path]) -> None:
    local = find_profile("local")
    assert [layer_of(path / "mine.yaml") for path in folders] == ["here"] * 2 + ["user"] * 6
    assert layer_of(Path("/etc/hpctrain/mine.yaml")) == "system"
    assert layer_of(local) == "shipped"
    assert layer_of(folders[0] / "families" / "mine.yaml") == "family"
    assert layer_at("site_profiles/local.yaml:3") == "shipped"
    assert layer_at("site_profiles/families/x.yaml:3") == "family"
    assert layer_at("this machine") == "this machine"
    assert layer_at("a:b") == "a:b"
    assert (label_of(local), label_of(Path("site_profiles/a.yaml"))) == (
        "site_profiles/local.yaml", "./site_profiles/a.yaml",
    )  # fmt: skip


def test_a_stated_number_precedes_that_of_this_machine(folders: list[Path]) -> None:
    text = find_profile("local").read_text().partition("\npartitions:")[0]
    (folders[0] / "local.yaml").write_text(f"{text}\npartitions: [{{name: p, cpus_per_node: 3}}]\n")
    site = load_site("local", Machine(cpus=12, gpus=2))
    (own,) = site.value.partitions
    assert (own.name, own.cpus_per_node, own.gpus_per_node, own.default) == ("p", 3, 2, True)
    assert site.origin("partitions.0.gpus_per_node") == "this machine"
    assert site.origin("partitions.0.cpus_per_node").startswith("local.yaml:")


def test_one_file_by_two_paths_is_one_file(folders: list[Path]) -> None:
    (folders[1] / "mine.yaml").write_text(PROFILE)
    (folders[3] / "mine.yaml").symlink_to((folders[1] / "mine.yaml").resolve())
    assert list(files_named("mine")) == [folders[1] / "mine.yaml"]


def test_of_several_profiles_of_a_name_the_first_of_the_path_is_listed(
    folders: list[Path],
) -> None:
    for folder in (folders[2], folders[4]):
        (folder / "mine.yaml").write_text(PROFILE)
    assert [path for path in profile_files() if path.stem == "mine"] == [folders[2] / "mine.yaml"]
