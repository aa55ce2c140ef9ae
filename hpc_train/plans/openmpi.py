"""Open MPI 4 and 5: what a site's words become, and which of them are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.plan import Setting
from hpc_train.model.versions import parts, within
from hpc_train.plans.context import Site

# Pattern of a word or a variable's name -> what to write for Open MPI 5.
_GONE = {
    r"(OMPI_MCA_)?orte_tag_output": "PRTE_MCA_output=tag, or --output tag",
    r"(OMPI_MCA_)?orte_base_help_aggregate": "OMPI_MCA_opal_base_help_aggregate",
    r"orte_ess_base_stream_buffering": "OMPI_MCA_ompi_stream_buffering",
    r"(OMPI_MCA_)?oob_tcp_if_(in|ex)clude": "PRTE_MCA_prte_if_include",
    r"(OMPI_MCA_)?(orte|plm|rmaps|ras|oob|ess)_\w+": "PRTE_MCA_…, its runtime is PRRTE",
    r"PRRTE_MCA_\w+": "PRTE_MCA_…, with one R",
    r"--?(npernode|npersocket|cpus-per-proc|bind-to-core)": "--map-by ppr:N:node:PE=M, --bind-to",
}


def is_five(release: str | None) -> bool:
    """Say whether a site has Open MPI 5 or later; unknown counts as 4."""
    return release is not None and within(parts(release), ">=5")


def bind_word(word: str, release: str | None) -> str:
    """Return the version's word for a socket, which became a package."""
    if word not in ("socket", "package"):
        return word
    return "package" if is_five(release) else "socket"


def check_openmpi(site: Site, env: Mapping[str, Setting], launcher: str) -> tuple[str, ...]:
    """Warn of what Open MPI 5 no longer knows: it would be ignored without a word."""
    launchers = site.value.launchers
    if not is_five(launchers.openmpi):
        return ()
    return tuple(_old_words(site, env, launcher))


def _old_words(site: Site, env: Mapping[str, Setting], launcher: str) -> Iterator[str]:
    launchers = site.value.launchers
    if launcher == "srun" and launchers.mpi == "pmi2":
        yield f"{site.origin('launchers.mpi')}: Open MPI 5 has no PMI-2; use pmix"
    places = [(word, site.near("launchers.mpirun_args")) for word in launchers.mpirun_args]
    places = places if launcher == "mpirun" else []
    for word, origin in [*places, *((name, setting.origin) for name, setting in env.items())]:
        for pattern, instead in _GONE.items():
            if re.fullmatch(pattern, word):
                yield f"{origin}: Open MPI 5 has no {word}: {instead}"
                break
