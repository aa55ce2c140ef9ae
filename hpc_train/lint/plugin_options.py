"""The options that plug-ins of a site (SPANK) add to sbatch and srun."""

from __future__ import annotations

from msgspec.structs import replace

from hpc_train.model.site import SiteProfile
from hpc_train.slurm_options import KINDS, Grammar, plugin_options


def with_plugins(grammar: Grammar, site: SiteProfile | None) -> Grammar:
    """Add the options of the site, and those of the plug-ins that several sites have."""
    known = {name: kind for options in plugin_options().values() for name, kind in options.items()}
    own = {name: KINDS[value] for name, value in _declared(site).items()}
    return replace(grammar, long={**known, **own, **grammar.long})


def plugin_of(option: str, site: SiteProfile | None) -> str:
    """Return the plug-in of an option; empty for Slurm's own, and for those the site declares."""
    if option in _declared(site):
        return ""
    found = (name for name, options in plugin_options().items() if option in options)
    return next(found, "")


def _declared(site: SiteProfile | None) -> dict[str, str]:
    return dict(site.plugin_options) if site else {}
