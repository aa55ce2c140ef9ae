"""Finds the templates and site profiles that ship with the package."""

from __future__ import annotations

import re
from pathlib import Path

from hpc_train.errors import HpcTrainError

_PACKAGE = Path(__file__).resolve().parent
_OURS = re.compile(r'^name\s*=\s*"hpctrain"\s*$', re.MULTILINE)


def template_folder() -> Path:
    """Return the folder of the script templates."""
    return locate("templates", _PACKAGE)


def profile_folder() -> Path:
    """Return the folder of the site profiles that ship with hpctrain."""
    return locate("site_profiles", _PACKAGE)


def locate(name: str, package: Path) -> Path:
    """Return folder `name` of the package: inside the wheel, else in the checkout.

    Raises:
        HpcTrainError: neither place has it.
    """
    installed = package / "_data" / name
    if installed.is_dir():
        return installed
    checkout = package.parent
    # Beside an installed package lie other packages; a `templates` among them is a stranger's.
    if _is_checkout(checkout) and (checkout / name).is_dir():
        return checkout / name
    raise HpcTrainError(
        f"the installation has no {name}: neither {installed} nor a checkout around {package}",
        "reinstall hpctrain",
    )


def _is_checkout(folder: Path) -> bool:
    project = folder / "pyproject.toml"
    return project.is_file() and bool(_OURS.search(project.read_text(encoding="utf-8")))
