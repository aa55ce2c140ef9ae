"""Words of records -> the set of words of each run, each different set once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.tables.record_arrays import Ints


class WordSets(NamedTuple):
    """Different sets of words, and the number of each run's; that of a run without words is 0."""

    sets: list[frozenset[str]]
    codes: Ints


def word_sets(run: Any, word: Ints, words: Sequence[str], runs: int) -> WordSets:
    """Return the words of each run; a `word` is an index of `words`, negative for none.

    `run` is the number of each record's run; records of other runs do not count.
    """
    sets, found = [frozenset[str]()], np.zeros(runs, dtype=np.int64)
    for number in np.unique(word[word >= 0]).tolist():
        has = np.zeros(runs, dtype=np.int64)
        own = run[word == number]
        has[own[own < runs]] = 1
        # The first entry keeps the number of the empty set.
        key, kinds = pd.factorize(np.append(0, 2 * found + has))
        sets = [sets[kind >> 1] | ({words[number]} if kind & 1 else set()) for kind in kinds]
        found = key[1:].astype(np.int64)
    return WordSets(sets, found)


def joined_sets(parts: Sequence[WordSets]) -> WordSets:
    """Return the sets of the runs of all parts, in order."""
    sets = list(dict.fromkeys([frozenset[str](), *(own for part in parts for own in part.sets)]))
    codes = [
        np.array([sets.index(own) for own in part.sets], dtype=np.int64)[part.codes]
        for part in parts
    ]
    return WordSets(sets, np.concatenate(codes))
