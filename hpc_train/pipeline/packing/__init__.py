"""Evidence and its report -> a bundle."""
