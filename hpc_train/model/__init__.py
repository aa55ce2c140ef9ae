"""The values that the stages exchange; no side effects, no scheduler, no torch.

Here: immutable types, the rules that two stages need, and the registry of metrics.
Not here: reading or writing files, and rules that one stage alone needs.

The types do not use `from __future__ import annotations`: msgspec compiles an annotation that is a
string each time hpctrain starts, which took a fifth of the CPU time of `hpctrain render`.
"""
