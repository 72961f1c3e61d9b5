"""Local machines: ten classes of noisy digits, one hundred clusters or a thousand landmarks."""

from functools import partial

import mdlearn

from .contest import Case, Contest, Rival, certified
from .workloads import noisy_digits

DOT = {"n_clusters": 100, "n_landmarks": 64, "loss": "squared_hinge", "C": 100.0}
RBF = {"n_clusters": 1, "n_landmarks": 1000, "projection": "rbf", "sigma": 8.0, "C": 1e5, "loss": "squared_hinge"}


def accuracy(X, y, least):
    """What judges a model by its share of right answers."""

    def judge(model):
        share = model.score(X, y)
        return f"accuracy {share:.3f}, at least {least} asked", share >= least

    return judge


def rivals(X, codes, X_test, test, goal):
    """LIBSVM for the same rows, and k-means with one hundred clusters, in units of which goals are given."""
    from sklearn.cluster import KMeans
    from sklearn.svm import SVC

    share = SVC().fit(X, codes).score(X_test, test)
    return [
        Rival("package", "SVC", partial(SVC().fit, X, codes), f"accuracy {share:.3f}", ran=True),
        Rival("floor", "k-means", partial(KMeans(100, n_init=1, random_state=0).fit, X), "", goal),
    ]


def dot(m):
    """L3-SVM over dot products against k-means with as many clusters."""
    data = noisy_digits(m)
    fit = partial(mdlearn.fit, "l3svm", *data[:2], **DOT)
    return Contest(certified(fit, 1e-6), rivals(*data, 1.5), judge=accuracy(*data[2:], 0.972))


def rbf(m):
    """One machine over many landmarks. The goal was 4 s where k-means with one hundred clusters took 0.8 s."""
    data = noisy_digits(m)
    fit = partial(mdlearn.fit, "l3svm", *data[:2], **RBF)
    return Contest(certified(fit, 1e-6), rivals(*data, 5.0), judge=accuracy(*data[2:], 0.981))


def predict(m):
    """Labels of 5000 new rows. The goal was 0.03 s where LIBSVM's took 1.35 s."""
    from sklearn.svm import SVC

    X, codes, X_test, _ = noisy_digits(m)
    model, peer = mdlearn.fit("l3svm", X, codes, **DOT), SVC().fit(X, codes)
    against = [Rival("package", "SVC", partial(peer.predict, X_test), "", 0.022)]
    return Contest(lambda: model, against, call=partial(model.predict, X_test), note=f"{len(X_test)} rows")


DIGITS = 20_000
CASES = (
    Case("W7", "l3svm, dot, K = 100, L = 64", partial(dot, DIGITS)),
    Case("W7", "l3svm, dot, predict", partial(predict, DIGITS)),
    Case("W7", "l3svm, RBF, K = 1, L = 1000", partial(rbf, DIGITS)),
)
