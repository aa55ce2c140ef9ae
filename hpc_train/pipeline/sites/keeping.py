"""Results of smoke jobs, appended to a profile as `tests.expect`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hpc_train.assets import user_folder
from hpc_train.errors import HpcTrainError, SiteProfileError
from hpc_train.files import cannot_write, write_file
from hpc_train.model.site import Expected, SiteProfile
from hpc_train.pipeline.sites.smoke import same_kind
from hpc_train.sites.load import load_site
from hpc_train.sites.search import layer_of

# The block written by hpctrain, up to the next key of the file.
_BLOCK = re.compile(r"^tests:.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def keep(site: SiteProfile, file: Path, seen: Expected) -> Path:
    """Write a result into the user's profile, or into a new one that extends the shipped one.

    Raises:
        SiteProfileError: the file cannot be written, or would no longer load.
    """
    kept = site.tests.expect if site.tests else ()
    results = [*(one for one in kept if not same_kind(one, seen)), seen]
    target = file
    if layer_of(file) in ("shipped", "system"):
        target = user_folder() / f"{site.name}.yaml"
    text = _BLOCK.sub("", _text_of(target, site.name))
    _replace(target, text.rstrip("\n") + "\n" + _block(results))
    return target


def _text_of(target: Path, name: str) -> str:
    if target.is_file():
        return target.read_text(encoding="utf-8")
    return f"schema: 1\nname: {name}\nextends: {name}\n"


def _block(results: Iterable[Expected]) -> str:
    lines = ["tests:", "  expect:"]
    for one in results:
        facts = {key: value for key, value in msgspec.structs.asdict(one).items() if value}
        lines.append(f"    - {msgspec.json.encode(facts).decode()}")
    return "\n".join(lines) + "\n"


def _replace(target: Path, text: str) -> None:
    """Load the new text before it replaces the old one; the old one stays if this fails."""
    trial = target.parent / ".hpctrain-trial" / target.name
    try:
        trial.parent.mkdir(parents=True, exist_ok=True)
        trial.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise cannot_write(target, failure) from None
    try:
        load_site(str(trial))
        write_file(target, text.encode())
    except HpcTrainError as failure:
        raise SiteProfileError(f"{target}: not written: {failure.message}", failure.hint) from None
    finally:
        trial.unlink(missing_ok=True)
        trial.parent.rmdir()
