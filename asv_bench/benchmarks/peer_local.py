"""Local machines: ten classes of noisy digits, one hundred clusters."""

from functools import partial

import mdlearn

from .contest import Case, Contest, Rival, certified
from .workloads import noisy_digits

ACCURACY = 0.972


def dot(m):
    """L3-SVM over dot products against k-means with as many clusters, and LIBSVM for the same rows."""
    from sklearn.cluster import KMeans
    from sklearn.svm import SVC

    X, codes, X_test, test = noisy_digits(m)
    fit = partial(mdlearn.fit, "l3svm", X, codes, n_clusters=100, n_landmarks=64, loss="squared_hinge", C=100.0)
    share, peer = fit().score(X_test, test), SVC().fit(X, codes)
    rivals = [
        Rival("package", "SVC", partial(SVC().fit, X, codes), f"accuracy {peer.score(X_test, test):.3f}", ran=True),
        Rival("floor", "k-means", partial(KMeans(100, n_init=1, random_state=0).fit, X), "", 1.5),
    ]
    note = f"accuracy {share:.3f}, at least {ACCURACY} asked"
    return Contest(certified(fit, 1e-6), rivals, note=note, held=share >= ACCURACY)


CASES = (Case("W7", "l3svm, dot, K = 100, L = 64", partial(dot, 20_000)),)
