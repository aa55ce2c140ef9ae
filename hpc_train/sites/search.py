"""The search path of site profiles: name of a profile or family -> file.

Search path: `./`, the folders of `$HPCTRAIN_SITE_PATH`, `~/.config/hpctrain`, `/etc/hpctrain`, each
with its `site_profiles`; then that of a running lab; last the package. The first file with a name
is used.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.base.data_folders import (
    DEFAULTS_FILE,
    LAB_FOLDER,
    profile_folder,
    site_folders,
    system_folder,
)
from hpc_train.base.errors import SiteProfileError, UnknownNameError
from hpc_train.base.files import read_regular
from hpc_train.base.yamlfile import list_files, lookup, nearest_file, read

_EXTENDS = re.compile(rb"\bextends\W{1,8}([\w.-]{1,256})")
FAMILIES = "families"
NEXT = "hpctrain site list prints all of them; hpctrain site init drafts a profile of this cluster"


def search_path() -> tuple[Path, ...]:
    """Return the folders that may hold profiles, first match first."""
    given = (Path(), *site_folders())
    return (*(place for folder in given for place in _places(folder)), LAB_FOLDER, profile_folder())


def find_profile(name: str) -> Path:
    """Return the file of a profile given by name or by path.

    Raises:
        UnknownNameError: no profile of that name. SiteProfileError: a path to no file.
    """
    if "/" in name or name.endswith((".yaml", ".yml")):
        path = Path(name)
        if path.exists():
            return path
        hint = f"{list_files(path)}; hpctrain site list prints the names that --site takes"
        if any(files_named(path.stem)):
            hint = f"for the profile of that name, type it without a path: --site {path.stem}"
        raise SiteProfileError(f"{name}: no such file of a site profile{nearest_file(path)}", hint)
    for path in files_named(name):
        return path
    known = [path.stem for path in profile_files()]
    own = [path.stem for path in profiles_with(f"scheduler: {name}\n")]
    hint = f"{name} is a scheduler; sites that have it: {', '.join(own)}; {NEXT}" if own else NEXT
    raise UnknownNameError("site", name, known, hint=hint)


def announcement(name: str, path: Path) -> tuple[str, ...]:
    """Return a notice on a profile that was found by name in the current folder.

    The folder may belong to another user, and the setup lines of the profile run in the job.
    """
    if path != Path(name) and layer_of(path) == "here":
        return (f"site {name}: using the profile {path} of this folder",)
    return ()


def files_named(name: str) -> Iterator[Path]:
    """Yield the files of profiles or families with that name, first match first."""
    seen: set[Path] = set()
    for folder in filter(Path.is_dir, search_path()):
        for path in (folder / f"{name}.yaml", folder / FAMILIES / f"{name}.yaml"):
            if path.is_file() and (place := without_links(path)) not in seen:
                seen.add(place)
                yield path


def profile_files() -> Iterator[Path]:
    """Yield every profile file on the search path, sorted by name."""
    found: dict[str, Path] = {}
    for folder in search_path():
        for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
            if path.stem not in found and path.name != DEFAULTS_FILE and _looks_like_profile(path):
                found[path.stem] = path
    yield from (found[name] for name in sorted(found))


def label_of(path: Path) -> str:
    """Return the path of a shipped profile in the project, independent of the installation."""
    shipped, place = profile_folder(), without_links(path)
    if place.is_relative_to(shipped):
        return f"site_profiles/{place.relative_to(shipped)}"
    # The current folder may contain a folder with that name, too.
    return f"./{path}" if path.parts[0] == "site_profiles" else str(path)


def layer_of(path: Path) -> str:
    """Return the layer of a file: family, shipped, system, user, or this folder."""
    if path.parent.name == FAMILIES:
        return "family"
    place = without_links(path)
    if place.is_relative_to(profile_folder()):
        return "shipped"
    if place.is_relative_to(system_folder().resolve()):
        return "system"
    return "here" if path.parent in _places(Path()) else "user"


def layer_at(origin: str) -> str:
    """Return the layer of an origin: that of its file, or the origin itself."""
    file, _, line = origin.rpartition(":")
    if not line.isdigit():
        return origin
    path = Path(file)
    if file.startswith("site_profiles/") and path.parent.name != FAMILIES:
        return "shipped"
    return layer_of(path)


def without_links(path: Path) -> Path:
    """Return the absolute path of a profile, with no link in it.

    Files of the package are no links, and each question costs a system call for each folder.
    """
    shipped = profile_folder()
    return path if path.parent in (shipped, shipped / FAMILIES) else path.resolve()


def _places(folder: Path) -> tuple[Path, Path]:
    return folder, folder / "site_profiles"


def profiles_with(key: str) -> Iterator[Path]:
    """Yield the profiles that contain a word, themselves or in a file that they may extend.

    Nothing is parsed: of many profiles, only those with a key need to be loaded.
    """
    texts: dict[str, list[bytes]] = defaultdict(list)
    for folder in search_path():
        for path in (*folder.glob("*.yaml"), *folder.glob(f"{FAMILIES}/*.yaml")):
            texts[path.stem].append(_text(path))
    for path in profile_files():
        names = _chain(path.stem, texts)
        if any(key.encode() in text for name in names for text in texts[name]):
            yield path


def _chain(name: str, texts: Mapping[str, Sequence[bytes]]) -> set[str]:
    """Return a name and those that the files with this name extend."""
    found, left = set(), {name}
    while left:
        name = left.pop()
        found.add(name)
        parents = {each.decode() for text in texts[name] for each in _EXTENDS.findall(text)}
        left |= (parents & texts.keys()) - found
    return found


def _text(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError:
        return b""


def _looks_like_profile(path: Path) -> bool:
    """`./` also contains job files; a profile has `schema`, and `scheduler` or `extends`."""
    if path.parent != Path():
        return True
    if b"schema" not in _text(path):
        return False
    try:
        document = read(path, SiteProfileError).data
    except SiteProfileError:
        return False
    says = any(lookup(document, key) is not None for key in ("scheduler", "extends"))
    return says and lookup(document, "schema") is not None
