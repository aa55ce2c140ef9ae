"""Options and variables of a site that Open MPI 5 no longer supports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.plan import Setting
from hpc_train.model.versions import at_least
from hpc_train.plans.context import Context

# Pattern of an option or a variable's name -> its replacement in Open MPI 5.
_GONE = {
    r"(OMPI_MCA_)?orte_tag_output": "PRTE_MCA_output=tag, or --output tag",
    r"(OMPI_MCA_)?orte_base_help_aggregate": "OMPI_MCA_opal_base_help_aggregate",
    r"orte_ess_base_stream_buffering": "OMPI_MCA_ompi_stream_buffering",
    r"(OMPI_MCA_)?oob_tcp_if_(in|ex)clude": "PRTE_MCA_prte_if_include",
    r"(OMPI_MCA_)?(orte|plm|rmaps|ras|oob|ess)_\w+": "PRTE_MCA_…, its runtime is PRRTE",
    r"PRRTE_MCA_\w+": "PRTE_MCA_…, with one R",
    r"--?(npernode|npersocket|cpus-per-proc|bind-to-core)": "--map-by ppr:N:node:PE=M, --bind-to",
}


def openmpi_warnings(context: Context, env: Mapping[str, Setting]) -> tuple[str, ...]:
    """Warn of options that Open MPI 5 no longer has and silently ignores."""
    if not at_least(context.site.value.launchers.openmpi, "5"):
        return ()
    return tuple(_old_words(context, env))


def _old_words(context: Context, env: Mapping[str, Setting]) -> Iterator[str]:
    site, launcher = context.site, context.launcher
    launchers = site.value.launchers
    if launcher.mpi and launcher.through_srun and launchers.mpi == "pmi2":
        yield f"{site.origin('launchers.mpi')}: Open MPI 5 has no PMI-2; use pmix"
    places = [(word, site.near("launchers.mpirun_args")) for word in launchers.mpirun_args]
    places = places if launcher.open_mpi else []
    for word, origin in [*places, *((name, setting.origin) for name, setting in env.items())]:
        for pattern, instead in _GONE.items():
            if re.fullmatch(pattern, word):
                yield f"{origin}: Open MPI 5 has no {word}: {instead}"
                break
