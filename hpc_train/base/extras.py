"""What the core lacks: which extra contains a package, and the command that installs it here.

`pip install hpctrain` is the core of a login node. A command that needs more says so with `need`
before it reads or writes anything; `lacking` turns an import that failed later into the same error.
"""

import importlib.util
import shlex
import sys
from pathlib import Path

from hpc_train.base.errors import MissingExtraError

# Extra -> names under which its packages are imported; pandas contains numpy.
EXTRAS = {
    "report": ("pandas", "scipy", "matplotlib"),
    "parquet": ("pyarrow", "pandas"),
    "xlsx": ("openpyxl",),
    "fast": ("hyperscan",),
    "torch": ("torch", "sklearn"),
    "sagemaker": ("boto3",),
}
_CONTAINED = {"numpy": "pandas"}


def need(what: str, extra: str, instead: str = "", *, only: tuple[str, ...] = ()) -> None:
    """Check that the packages of an extra, or `only` some, can be found, without importing them.

    Raises:
        MissingExtraError: one sentence: that `what` needs them, and the command to type.
    """
    missing = [name for name in only or EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise _error(what, missing, extra, instead)


def is_installed(extra: str) -> bool:
    """Return whether all packages of an extra can be found."""
    return all(importlib.util.find_spec(name) is not None for name in EXTRAS[extra])


def lacking(failure: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error for a failed import of a package of an extra; None for any other module."""
    top = (failure.name or "").partition(".")[0]
    package = _CONTAINED.get(top, top)
    for extra, names in EXTRAS.items():
        if package in names:
            return _error("this command", [top], extra, "")
    return None


def _error(what: str, missing: list[str], extra: str, instead: str) -> MissingExtraError:
    *others, last = missing
    names = f"{', '.join(others)} and {last}" if others else last
    them = "them" if others else "it"
    other = f", or {instead}" if instead else ""
    return MissingExtraError(
        f"{what} needs {names}; install {them}: {install_command(extra)}{other}"
    )


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the environment of this interpreter."""
    target = shlex.quote(f"{_source()}[{extra}]")
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {shlex.quote(sys.prefix)} {target}"
    return f"{shlex.quote(sys.executable)} -m pip install {target}"


def _source() -> str:
    """Return what pip installed: a folder or wheel of this machine, else the package's name."""
    # Only an error needs it.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        text = distribution("hpctrain").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    address = urlsplit(json.loads(text)["url"] if text else "")
    path = Path(unquote(address.path))
    return str(path) if address.scheme == "file" and path.exists() else "hpctrain"
