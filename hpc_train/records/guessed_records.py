"""Logs of a run in which no parser found a measurement -> what the generic parser reads in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hpc_train.model.record import Pack, Record, Scope
from hpc_train.records.line_dispatch import Mark
from hpc_train.records.live_pipe_batches import is_live
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.read_log import Log, Wanted, parsers_of, read

GUESSING = "generic"
# What a log may contain whatever its format: sizes, conditions, bars of an unknown loop.
_NO_FORMAT = frozenset(
    {
        *("iteration_time", "not_finite", "condition", "seed", "threads", "epoch"),
        *(
            "world_size",
            "global_batch_size",
            "tokens_per_step",
            "batch_size",
            "sequence_length",
            "parameters",
        ),
    }
)


def with_scope(kind: Record, scope: Scope) -> Record:
    """Return a rate of unknown scope that was guessed with this scope; all others as they are."""
    is_guessed = kind.parser == GUESSING and kind.scope == "unknown"
    if is_guessed and kind.metric in ("samples_per_second", "tokens_per_second"):
        return msgspec.structs.replace(kind, scope=scope)
    return kind


class MeasuredRun:
    """Notes what was found in the logs of a run; if nothing was measured, reads them again.

    A pipe cannot be read again. If the run is known to have one rank, a rate of unknown scope is
    that of the job.
    """

    def __init__(self, logs: Sequence[Log], wanted: Wanted) -> None:
        self.logs = logs
        self._wanted = wanted
        self._metrics: set[str] = set()
        self._ranks: set[float] = set()

    def noted(self, packs: Iterator[Pack]) -> Iterator[Pack]:
        """Yield the packs, and note their metrics."""
        for pack in packs:
            self._metrics |= {kind.metric for kind in pack.kinds}
            sizes = {n for n, kind in enumerate(pack.kinds) if kind.metric == "world_size"}
            # Two numbers are as good as more.
            if sizes and len(self._ranks) < 2:
                stated = zip(pack.kind, pack.value, strict=True)
                self._ranks |= {value for kind, value in stated if kind in sizes}
            yield pack

    def guessed(self, census: ParseStats) -> Iterator[Pack]:
        """Yield what the generic parser reads, if no other parser found a measurement."""
        if not self._wanted.guessing or self._metrics - _NO_FORMAT:
            return
        wanted = Wanted((self._wanted.guessing,), self._wanted.prefix)
        stats = ParseStats()
        for log in self.logs:
            if log.source in census.failed or is_live(log.path):
                continue
            for pack in read(log, parsers_of(wanted), wanted.prefix, stats, Mark()):
                pack.kinds = [self._scoped(kind) for kind in pack.kinds]
                yield pack.without(self._repeated(pack))
        census.add(ParseStats(known=stats.known))

    def _scoped(self, kind: Record) -> Record:
        return with_scope(kind, "global") if self._ranks == {1.0} else kind

    def _repeated(self, pack: Pack) -> set[int]:
        """Return the positions of values that are not finite, if they were counted before."""
        if "not_finite" not in self._metrics:
            return set()
        return {n for n, kind in enumerate(pack.kind) if pack.kinds[kind].metric == "not_finite"}
