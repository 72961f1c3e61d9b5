"""Local machines: ten classes of noisy digits, one hundred clusters or a thousand landmarks."""

from functools import partial

import numpy as np

import mdlearn

from .contest import Case, Contest, Rival, certified
from .workloads import noisy_digits

DOT = {"n_clusters": 100, "n_landmarks": 64, "loss": "squared_hinge", "C": 100.0}
RBF = {"n_clusters": 1, "n_landmarks": 1000, "projection": "rbf", "sigma": 8.0, "loss": "squared_hinge", "C": 1e5}


def accuracy(X, y, least):
    """What judges a model by its share of right answers."""

    def judge(model):
        share = model.score(X, y)
        return f"accuracy {share:.3f}, at least {least} asked", share >= least

    return judge


def libsvm(X, codes, X_test, test, goal=None):
    """LIBSVM for the same rows."""
    from sklearn.svm import SVC

    share = SVC().fit(X, codes).score(X_test, test)
    return Rival("package", "SVC", partial(SVC().fit, X, codes), f"accuracy {share:.3f}", goal, ran=True)


def k_means(X, goal=None):
    """The floor of a hundred clusters."""
    from sklearn.cluster import KMeans

    return Rival("floor", "k-means(100)", partial(KMeans(100, n_init=1, random_state=0).fit, X), "", goal)


def machines_by_cell(X, codes, n=20):
    """What predicts by k-means and a LinearSVC in every cell."""
    from sklearn.cluster import KMeans
    from sklearn.svm import LinearSVC

    cells = KMeans(n, n_init=1, random_state=0).fit(X)

    def machine(rows, labels):
        if labels.min() == labels.max():
            return lambda A: np.full(A.shape[0], labels[0])
        return LinearSVC(random_state=0).fit(rows, labels).predict

    machines = [machine(X[cells.labels_ == k], codes[cells.labels_ == k]) for k in range(n)]

    def predict(A):
        where, out = cells.predict(A), np.empty(A.shape[0], dtype=codes.dtype)
        for k in np.unique(where):
            out[where == k] = machines[k](A[where == k])
        return out

    return predict


def dot(m):
    """L3-SVM over dot products against k-means with as many clusters."""
    data = noisy_digits(m)
    fit = partial(mdlearn.fit, "l3svm", *data[:2], **DOT)
    return Contest(certified(fit, 1e-6), [libsvm(*data), k_means(data[0], 1.5)], judge=accuracy(*data[2:], 0.972))


def rbf(m):
    """One machine over many landmarks. The goal was 4 s where LIBSVM took 2 s."""
    data = noisy_digits(m)
    fit = partial(mdlearn.fit, "l3svm", *data[:2], **RBF)
    return Contest(certified(fit, 1e-6), [libsvm(*data, 2.0), k_means(data[0])], judge=accuracy(*data[2:], 0.981))


def predict(m):
    """Labels of 5000 new rows. The goal was 0.03 s where LIBSVM's took 1.35 s."""
    from sklearn.svm import SVC

    X, codes, X_test, test = noisy_digits(m)
    model, peer, cells = mdlearn.fit("l3svm", X, codes, **DOT), SVC().fit(X, codes), machines_by_cell(X, codes)
    share = (cells(X_test) == test).mean()
    against = [
        Rival("package", "SVC", partial(peer.predict, X_test), f"accuracy {peer.score(X_test, test):.3f}", 0.022),
        Rival("numpy", "LinearSVC per cell of k-means(20)", partial(cells, X_test), f"accuracy {share:.3f}"),
    ]
    return Contest(lambda: model, against, call=partial(model.predict, X_test), judge=accuracy(X_test, test, 0.972))


DIGITS = 20_000
CASES = (
    Case("W7", "l3svm, dot, K = 100, L = 64", partial(dot, DIGITS)),
    Case("W7", "l3svm, dot, predict 5000 rows", partial(predict, DIGITS)),
    Case("W7", "l3svm, RBF, K = 1, L = 1000", partial(rbf, DIGITS)),
)
