"""Kernels over strings and other objects: what a Gram matrix given by hand makes, and what needs numbers."""

import numpy as np
import pytest
from documents import EXAMPLES

import mdlearn
from mdlearn.data.rows.object_rows import ObjectRows
from mdlearn.plugins.registry import registry
from mdlearn.testing import check_kernel

NAMESPACE = {"__name__": "example"}
exec(EXAMPLES["strings"], NAMESPACE)
Spectrum = NAMESPACE["Spectrum"]
rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abc"), p=(0.6, 0.3, 0.1) if i % 2 else (0.2, 0.4, 0.4), size=9)) for i in range(50)]
NEW = ["".join(rng.choice(list("abcd"), size=7)) for _ in range(20)]
y = np.arange(50) % 2
GIVEN = {"kernel": "spectrum", "length": 2}


class Sets(mdlearn.KernelFunction):
    """Number of common elements of two sets, which say nothing of files."""

    name = "sets"
    summary = "|a and b|"
    rows = "any"

    def values(self, params, A, B):
        return np.array([[float(len(a & b)) for b in B] for a in A])


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    for one in (Spectrum, Sets):
        monkeypatch.setitem(registry().kernels, one.name, one)


def gram(A, B):
    """Counts of common substrings of length two, letter by letter."""
    pairs = [[[w[i : i + 2] for i in range(len(w) - 1)] for w in words] for words in (A, B)]
    return np.array([[float(sum(u == v for u in a for v in b)) for b in pairs[1]] for a in pairs[0]])


@pytest.mark.parametrize("objective", ["svm", "ldm", "lssvm", "lsvm", "uldm", "svr"])
def test_a_list_of_strings_is_its_gram_matrix(objective):
    target = np.array([word.count("a") for word in WORDS], dtype=float) if objective == "svr" else y
    counts = np.random.default_rng(1).integers(0, 3, 50)
    ours = mdlearn.fit(objective, WORDS, target, sample_weight=counts, tol=1e-11, **GIVEN)
    theirs = mdlearn.fit(objective, gram(WORDS, WORDS), target, sample_weight=counts, kernel="precomputed", tol=1e-11)
    assert ours.certificate.objective == pytest.approx(theirs.certificate.objective, rel=1e-9)
    assert ours.certificate.converged and ours.n_features_in_ == 1
    f = theirs.decision_function(gram(NEW, WORDS))
    for kind in (list, tuple, np.array):
        assert ours.decision_function(kind(NEW)) == pytest.approx(f, abs=1e-4)


@pytest.mark.parametrize("way", ["ovr", "ovo"])
def test_several_classes(way):
    three = np.array([min(word.count("a") // 3, 2) for word in WORDS])
    ours = mdlearn.fit("svm", WORDS, three, multiclass=way, tol=1e-11, **GIVEN)
    theirs = mdlearn.fit("svm", gram(WORDS, WORDS), three, multiclass=way, kernel="precomputed", tol=1e-11)
    assert ours.decision_function(NEW) == pytest.approx(theirs.decision_function(gram(NEW, WORDS)), abs=1e-4)


def test_folds_keep_equal_objects_together_in_any_order():
    words, labels = [*WORDS, *WORDS[:20]], np.append(y, 1 - y[:20])
    found = mdlearn.cross_validate("svm", words, labels, cv=4, **GIVEN)
    for train, test in found.folds:
        assert not {words[i] for i in train} & {words[i] for i in test}
    order = np.random.default_rng(2).permutation(70)
    mixed = mdlearn.cross_validate("svm", [words[i] for i in order], labels[order], cv=4, **GIVEN)
    assert mixed.scores == pytest.approx(found.scores)
    loo = mdlearn.cross_validate("lssvm", WORDS, y, cv="loo", tol=1e-11, **GIVEN)
    one_by_one = [(np.delete(np.arange(50), i), [i]) for i in range(50)]
    refits = mdlearn.cross_validate("lssvm", WORDS, y, cv=one_by_one, tol=1e-11, **GIVEN)
    assert loo.decision == pytest.approx(refits.decision, abs=1e-4)
    chosen = mdlearn.select("svm", WORDS, y, grid={"C": [0.1, 1.0], "length": [1, 2]}, kernel="spectrum", cv=3)
    assert chosen.model.score(WORDS, y) > 0.8


def test_numbers_of_rows():
    def numbers(objects, key=lambda one: one):
        return ObjectRows.of(objects, key, "it").X[:, 0].tolist()

    assert numbers(["b", "a", "b", "c"]) == [1.0, 0.0, 1.0, 2.0]
    assert numbers([1, "a", 1]) == [0.0, 1.0, 0.0]  # no order among keys
    assert numbers([[1], [1]]) == [0.0, 1.0] and numbers([[1], [1]], tuple) == [0.0, 0.0]
    rows = ObjectRows.of(["b", "a", "c"], str, "it")
    assert rows.take(np.array([2, 0])).objects == ["c", "b"] and rows[1:].objects == ["a", "c"]
    assert rows.take(np.array([True, False, True])).objects == ["b", "c"]


def test_files_hold_objects_where_the_kernel_says_how(tmp_path, monkeypatch):
    from mdlearn.model.file.loading import load_model_file

    known = {"spectrum": Spectrum, "sets": Sets, "svm": type(mdlearn.objectives.svm.SVM())}
    model, path = mdlearn.fit("svm", WORDS, y, **GIVEN), tmp_path / "model.npz"
    model.save(path)
    again, _ = load_model_file(path, lambda kind, name: known[name])
    assert np.array_equal(again.decision_function(NEW), model.decision_function(NEW))
    sets = [frozenset(word) for word in WORDS]
    with pytest.raises(ValueError, match="kernel 'sets' does not say how a file holds its rows; write its methods enc"):
        mdlearn.fit("svm", sets, y, kernel="sets").save(path)
    for dtype in ("U9", "O", "c16"):  # what would be written, and never read again
        other = type("Other", (Sets,), {"encoded": lambda self, rows, t=dtype: {"w": np.zeros(len(rows)).astype(t)}})
        monkeypatch.setitem(registry().kernels, "sets", other)
        held = mdlearn.fit("svm", sets, y, kernel="sets")
        with pytest.raises(ValueError, match="object_w cannot be saved: a model file holds arrays of numbers there"):
            held.save(tmp_path / "other.npz")
        assert not (tmp_path / "other.npz").exists()
    short = type("Short", (Spectrum,), {"decoded": lambda self, values: values["strings"][1:]})
    with pytest.raises((TypeError, ValueError), match=r"Short\.decoded returned list, a list of"):
        load_model_file(path, lambda kind, name: {**known, "spectrum": short}[name])


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"kernel": "linear"}, TypeError, "X has dtype <U9; give real numbers"),
        (
            {"kernel": "rbf"},
            TypeError,
            "X has dtype <U9; give real numbers, or the kernel of a plugin that compares such",
        ),
        (
            {"X": [frozenset(word) for word in WORDS]},
            TypeError,
            "as numbers first, or give the kernel of a plugin that",
        ),
        (
            {**GIVEN, "X": lambda: [(WORDS, y)], "y": None},
            ValueError,
            "compares objects, not row blocks; give a list of",
        ),
        ({"kernel": Sets}, TypeError, "goes by its name, 'sets', once its plugin is installed"),
        ({**GIVEN, "approximation": "nystroem"}, ValueError, "compares objects, of which no features are made"),
        ({**GIVEN, "objective": "l3svm"}, ValueError, "objective 'l3svm' needs rows of numbers, and kernel 'spectrum'"),
        ({**GIVEN, "objective": "mdlm"}, ValueError, "objective 'mdlm' is linear"),
        ({**GIVEN, "X": "word"}, TypeError, "kernel 'spectrum' compares objects; give X as a list of them, not str"),
        ({**GIVEN, "X": 5.0}, TypeError, "give X as a list of them, not float"),
        ({**GIVEN, "X": np.array("word")}, TypeError, "give X as a list of them, not ndarray"),
        ({**GIVEN, "X": []}, ValueError, "X has 0 rows"),
        ({**GIVEN, "X": WORDS[:9]}, ValueError, "X has 9 rows but y has 50 labels"),
    ],
)
def test_what_needs_numbers_or_a_list(given, error, told):
    with pytest.raises(error, match=told):
        mdlearn.fit(**{"objective": "svm", "X": WORDS, "y": y, **given})


def test_an_objective_of_a_plugin_with_features_of_its_own_is_refused():
    own = type("Own", (mdlearn.objectives.svm.SVM,), {"name": "own", "features": lambda self, *given: None})
    own.__module__ = "elsewhere"
    with pytest.raises(ValueError, match="objective 'own' needs rows of numbers"):
        mdlearn.fit(own, WORDS, y, **GIVEN)


def test_the_checks_of_kernels_over_objects():
    check_kernel(Spectrum)
    check_kernel(Sets, [frozenset(word) for word in WORDS[:12]])
    with pytest.raises(
        AssertionError, match="kernel 'sets': the checks need 10 objects, as X or as its examples; got 0"
    ):
        check_kernel(Sets)
    lame = type("Lame", (Spectrum,), {"values": lambda self, params, A, B: gram(A, B) + len(A[0]) * 1.0})
    with pytest.raises(AssertionError, match=r"k\(a, b\) is .* for a = '', b = 'a'"):
        check_kernel(lame)
    lossy = type("Lossy", (Spectrum,), {"decoded": lambda self, values: ["a"] * len(values["strings"])})
    with pytest.raises(AssertionError, match="went through encoded and decoded have other kernel values"):
        check_kernel(lossy)
