"""`check_source` on blocks of every task: labels, several or unknown ones, numbers, and rows alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from mdlearn import sources
from mdlearn.testing import check_source

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 3))
MANY = RNG.integers(0, 2, (50, 4))
Y = {
    "labels": np.where(MANY[:, 0] > 0, "yes", "no"),
    "numbers": X[:, 0],
    "none": None,
    "unknown": np.where(MANY[:, 0] > 0, np.nan, MANY[:, 1]),
    "several": MANY,
    "several, sparse": sp.csr_matrix(MANY),
}


@pytest.mark.parametrize("case", Y)
def test_what_is_right_passes(case):
    check_source(sources.of_arrays(X, Y[case], rows=20), X, Y[case])


WRONG = {
    "another column": (MANY, MANY[:, ::-1], "all rows, row [0-9]+: what was given has the label"),
    "fewer columns": (MANY, MANY[:, :2], r"all rows: what was given has rows of shape \(4,\), the source \(2,\)"),
    "unknown elsewhere": (Y["unknown"], np.roll(Y["unknown"], 1), "all rows, row [0-9]+: what was given has the label"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told(case):
    given, found, told = WRONG[case]
    with pytest.raises(AssertionError, match=told):
        check_source(sources.of_arrays(X, found, rows=20), X, given)


def test_shapes_of_blocks():
    with pytest.raises(AssertionError, match=r"block 0 has 50 rows and labels of shape \(3, 4\); one for each row"):
        check_source([(X, MANY[:3])])
    with pytest.raises(AssertionError, match=r"block 0 has 50 rows and weights of shape \(50, 4\); one for each row"):
        check_source([(X, MANY, MANY)])
