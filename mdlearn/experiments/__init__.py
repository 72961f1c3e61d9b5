"""Programs that run the library on real data."""
