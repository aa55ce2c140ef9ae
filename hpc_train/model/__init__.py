"""The values that the stages exchange; no effects, nothing of a scheduler or of torch."""
