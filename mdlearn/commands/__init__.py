"""The commands `fit` and `predict`, and the files of rows that they read."""
