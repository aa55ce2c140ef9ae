"""The folders of a site and of the package: templates, profiles, data, pages of docs/."""

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

from hpc_train.base.errors import HpcTrainError, UnknownNameError, nearest

FileKind = Literal["job", "study", "site", "defaults"]
_PACKAGE = Path(__file__).resolve().parents[1]
_SYSTEM = Path("/etc/hpctrain")
# The profile of a running lab; only root writes there, and a reboot removes it.
LAB_FOLDER = Path("/run/hpctrain")
# In the configuration folder of the user, beside profiles: no profile.
DEFAULTS_FILE = "defaults.yaml"


def template_folder() -> Path:
    """Return the folder of the script templates."""
    return locate("templates", _PACKAGE)


def profile_folder() -> Path:
    """Return the folder of the site profiles that ship with hpctrain."""
    return locate("site_profiles", _PACKAGE)


def doc_folder() -> Path:
    """Return the folder of the documentation's pages."""
    return locate("docs", _PACKAGE)


def strategies_study() -> Path:
    """Return the study of the strategies of the reference trainer."""
    return locate("examples", _PACKAGE) / "strategies" / "study.yaml"


def data_file(*names: str) -> Path:
    """Return a file of the package's data, by its path below `hpc_train/data`."""
    return _PACKAGE.joinpath("data", *names)


def schema_file(kind: FileKind) -> Path:
    """Return the JSON Schema of a kind of input file."""
    return data_file("schemas", f"{kind}.json")


def schema_comment(kind: FileKind) -> str:
    """Return the first line of a file that names its schema to editors (YAML language server)."""
    return f"# yaml-language-server: $schema={schema_file(kind)}"


def site_folders() -> tuple[Path, ...]:
    """Return the folders of a site or user: `$HPCTRAIN_SITE_PATH`, the configuration."""
    own = [Path(p) for p in os.environ.get("HPCTRAIN_SITE_PATH", "").split(os.pathsep) if p]
    return (*own, user_folder(), system_folder())


def user_folder() -> Path:
    """Return the configuration folder of the user."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or _home() / ".config") / "hpctrain"


def _home() -> Path:
    """Return the home folder, or where there is none a folder that cannot exist."""
    try:
        return Path.home()
    except RuntimeError:
        # Neither $HOME nor an entry in the list of users: a container, or a service's account.
        return Path(os.devnull)


def system_folder() -> Path:
    """Return the configuration folder of the administrator."""
    return _SYSTEM


def template_path(profile: Path) -> tuple[Path, ...]:
    """Return the folders of templates that come before the package's, first match first.

    They are the `templates` here, beside the profile, and in the folders of the site.
    """
    # No folder twice: it would follow itself in the search.
    searched = {template_folder()}
    found = []
    for folder in (Path(), profile.parent, *site_folders()):
        templates = folder / "templates"
        if templates.is_dir() and (place := templates.resolve()) not in searched:
            searched.add(place)
            found.append(templates)
    return tuple(found)


@cache
def locate(name: str, package: Path) -> Path:
    """Return folder `name` of the package, resolved: inside the wheel, else in the checkout.

    Raises:
        HpcTrainError: neither place has it.
    """
    installed = package / "_data" / name
    if installed.is_dir():
        return installed.resolve()
    checkout = package.parent
    if (checkout / name).is_dir():
        return (checkout / name).resolve()
    raise HpcTrainError(
        f"the installation has no {name}: neither {installed} nor a checkout around {package}",
        "reinstall hpctrain",
    )


_FIRST = "tutorial"


def page_titles() -> dict[str, str]:
    """Return the title of each page by its name, the first one of the site first.

    Raises:
        HpcTrainError: the installation has no pages.
    """
    paths = sorted(doc_folder().glob("*.md"), key=lambda path: (path.stem != _FIRST, path.stem))
    heads = {path.stem: path.read_text("utf-8").partition("\n")[0] for path in paths}
    return {name: head.removeprefix("# ").strip() for name, head in heads.items()}


def page_text(name: str, commands: Iterable[str] = ()) -> str:
    """Return a page as Markdown, or the section whose heading begins with the word, as `events`.

    The name may be that of a file, `docs/files.md`. Where there is no such page, the nearest name
    may also be one of `commands`.

    Raises:
        UnknownNameError: no page has this name. HpcTrainError: the installation has no pages.
    """
    word = Path(name).name.partition("#")[0].removesuffix(".md")
    titles = page_titles()
    pages = {page: (doc_folder() / f"{page}.md").read_text(encoding="utf-8") for page in titles}
    sections: dict[str, str] = {}
    for text in pages.values():
        for found in re.finditer(r"^## (\w+).*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
            sections.setdefault(found[1].lower(), found[0])
    known = {**sections, **pages}
    if word not in known:
        hint = f"hpctrain help lists them{nearest(word, sections)}"
        raise UnknownNameError("page", word, [*titles, *commands], hint=hint)
    return known[word]
