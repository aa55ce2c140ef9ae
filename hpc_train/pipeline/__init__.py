"""The only composer of the stages: one module for each thing that a user asks for."""
