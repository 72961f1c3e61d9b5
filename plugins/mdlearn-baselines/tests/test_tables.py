"""All methods of the package on real data: they fit, they are certified, and they predict."""

import numpy as np
import pytest

import mdlearn

NAMES = ["mamc", "kmomd", "mdo", "csvm", "cluster_svm", "llsvm", "ml3"]


def halves(name):
    """Training and test rows of a set that comes with scikit-learn, columns of mean 0 and deviation 1."""
    X, y = getattr(pytest.importorskip("sklearn.datasets"), f"load_{name}")(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.array_split(order, 2)
    return X[train], y[train], X[test], y[test]


def test_registered():
    (record,) = [one for one in mdlearn.list_plugins() if one.distribution == "mdlearn-baselines"]
    assert sorted(record.objectives) == sorted(NAMES) and record.state == "ok"
    assert sorted(record.solvers) == ["latent", "sphere"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", ["breast_cancer", "wine"])
def test_real_data(name, data):
    X, y, X_test, y_test = halves(data)
    model = mdlearn.fit(name, X, y)
    assert model.certificate.converged
    # The larger class makes up 63 and 40 per cent.
    assert model.score(X_test, y_test) >= 0.9
