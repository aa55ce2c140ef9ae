"""The values that the stages exchange; no side effects, no scheduler, no torch."""
