"""Patterns on hostile text: the most that 20,000 characters cost, of all patterns of the package.

Budget: 50 ms.
"""

from __future__ import annotations

from tests.project.compiled_patterns import patterns
from tests.project.match_time import LENGTH, SHORT, asked, seconds_of, slowest, yardstick

ROUNDS, SHOWN = 3, 8


def main() -> None:
    found = patterns()
    costs = []
    for pattern, place in found.items():
        for _, method, text in slowest(pattern):
            whole = asked(pattern, text.longer(LENGTH // SHORT))
            took = min(seconds_of(pattern, method, whole) for _ in range(ROUNDS))
            costs.append((took, f"{place}.{method}", repr("".join(text.shown))))
    print(f"{len(found)} patterns, {LENGTH} characters: budget 50 ms each")
    print(f"  yardstick {min(yardstick() for _ in range(ROUNDS)) * 1e3:.1f} ms")
    shown: dict[str, str] = {}
    for took, place, start in sorted(costs, reverse=True):
        shown.setdefault(place, f"  {took * 1e3:5.1f} ms {place} on {start}")
    print("\n".join(list(shown.values())[:SHOWN]))


if __name__ == "__main__":
    main()
