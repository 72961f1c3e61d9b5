"""Weighted k-means over distinct rows, and distances of rows to centres.

May import data.rows. `data.features.landmarks` and objectives with clusters call it.
"""
