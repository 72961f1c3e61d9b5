"""The fitted model."""
