"""Labels as they are read: sorted classes, and the class of each row."""

import numpy as np
import pytest

from mdlearn.data.labels import check_labels

NAMES = ["iris virginica", "iris setosa", "\U0001f33c iris", "\uffff", "iris setosa ", ""]


@pytest.mark.parametrize("length", [4, 8, 20])
def test_texts_are_sorted_by_code_points(length):
    y = np.array(NAMES)[np.arange(40) % len(NAMES)].astype(f"U{length}")
    classes, codes = check_labels(y, len(y))
    wanted, places = np.unique(y, return_inverse=True)
    assert classes.dtype == y.dtype and classes.tolist() == wanted.tolist()
    assert np.array_equal(codes, places)
