"""Reports: one file without anything from elsewhere, whose numbers are those of the model."""

from __future__ import annotations

import html.parser
import re

import numpy as np
import pytest
from scipy import sparse

import mdlearn
from mdlearn.reports.svg import bars, curves, nice_ticks


def rows(seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 4))
    return X, np.argmax(X[:, :classes] + 0.7 * rng.standard_normal((120, classes)), axis=1)


class Page(html.parser.HTMLParser):
    """Cells of all tables, headings, and what a page would load."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.heads, self.loads, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
        self.loads += [tag] if tag in ("script", "link", "iframe", "object", "embed") else []
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        where = self.open[-1] if self.open else ""
        if where in ("td", "th"):
            self.cells[-1] += data
        elif where == "h2":
            self.heads.append(data)

    def after(self, name):
        return self.cells[self.cells.index(name) + 1]


def page_of(model, X, y, tmp_path, **given):
    path = tmp_path / "report.html"
    assert mdlearn.report(model, X, y, path, **given) == str(path)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert not page.loads and "http" not in text and "@import" not in text and "url(" not in text
    return page, text


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"bias": "free"}], ids=str)
@pytest.mark.parametrize("name", ["svm", "ldm", "l2lr"])
def test_numbers_are_those_of_the_model(name, settings, tmp_path):
    if name == "l2lr" and "kernel" in settings:
        pytest.skip("linear objective")
    X, y = rows()
    model = mdlearn.fit(name, X, y, **settings)
    page, text = page_of(model, X, y, tmp_path)
    assert float(page.after("objective")) == pytest.approx(model.certificate.objective, rel=1e-9)
    assert float(page.after("gap")) == pytest.approx(model.certificate.gap, rel=1e-6)
    assert page.after("converged") == "yes" and page.after("engine").startswith(model.solver)
    assert f"accuracy {model.score(X, y):.4f}" in text
    z = model.margins(X, y)
    assert float(page.after("mean")) == pytest.approx(z.mean(), rel=1e-5)
    first = np.argsort(np.abs(model.decision_function(X)), kind="stable")[0]
    at = page.cells.index("label certain")
    assert page.cells[at + 1] == str(first)
    value = float(page.cells[at + 4])
    assert value == pytest.approx(model.decision_function(X[first : first + 1])[0], rel=1e-5)
    assert ("Calibration" in page.heads) == (name == "l2lr")
    assert ("Coefficients" in page.heads) == ("kernel" not in settings)


def test_the_call_fits_the_model_again(tmp_path):
    X, y = rows(1)
    model = mdlearn.fit("ldm", X, y, kernel="rbf", C=2.5, lambda1=3.0)
    _, text = page_of(model, X, y, tmp_path)
    call = html.unescape(re.search(r"model = (mdlearn\.fit\(.*?\))</pre>", text).group(1))
    again = eval(call, {"mdlearn": mdlearn, "X": X, "y": y})
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-9)


def test_leave_one_out_is_that_of_cross_validate(tmp_path):
    X, y = rows(2)
    model = mdlearn.fit("lssvm", X, y, kernel="rbf", C=0.7)
    _, text = page_of(model, X, y, tmp_path)
    params = {key: value for key, value in model.params.items() if isinstance(value, float)}
    wanted = float(np.mean(mdlearn.cross_validate("lssvm", X, y, kernel="rbf", cv="loo", **params).scores))
    assert f"left out once: {wanted:.4f}" in text


def test_several_classes_weights_names_and_sparse_rows(tmp_path):
    X, y = rows(3, classes=3)
    y = np.array(["<a>", "b & c", "d"])[y]
    weight = np.random.default_rng(4).integers(0, 3, 120)
    for multiclass in ("ovr", "ovo"):
        model = mdlearn.fit("svm", X, y, multiclass=multiclass, sample_weight=weight)
        page, text = page_of(model, X, y, tmp_path, sample_weight=weight)
        assert "<a>" in page.cells and "&lt;a&gt;" in text and "<a>" not in text.replace("&lt;a&gt;", "")
        assert float(page.cells[page.cells.index("<a>") + 2]) == weight[y == "<a>"].sum()
    A = sparse.csr_matrix(X * (X > 0))
    page_of(mdlearn.fit("lsvm", A, y == "d"), A, y == "d", tmp_path)


def test_what_has_no_report_is_said(tmp_path):
    X, y = rows(5)
    with pytest.raises(TypeError, match="fitted classifier"):
        mdlearn.report("model", X, y, tmp_path / "a.html")
    with pytest.raises(TypeError, match="fitted classifier"):
        mdlearn.report(mdlearn.fit("svr", X, X[:, 0]), X, X[:, 0], tmp_path / "a.html")
    with pytest.raises(OSError):
        mdlearn.report(mdlearn.fit("svm", X, y), X, y, tmp_path / "none" / "a.html")
    assert not list(tmp_path.iterdir())


def test_pictures_hold_all_points_within_their_frame():
    x = np.linspace(-3.0, 7.0, 1000)
    drawn = curves([("one", x, x**2), ("two", x, np.zeros_like(x))], "x", "y")
    for points in re.findall(r'points="([^"]*)"', drawn):
        at = np.array([[float(value) for value in pair.split(",")] for pair in points.split()])
        assert at.shape[0] <= 400 and (at >= 0).all() and (at[:, 0] <= 560).all() and (at[:, 1] <= 260).all()
    assert curves([("", np.ones(3), np.ones(3))], "x", "y").count("polyline") == 1
    lengths = [
        float(width)
        for width in re.findall(r'width="([\d.]+)" height="12"', bars("abc", np.array([2.0, -1.0, 0.0]), "t"))
    ]
    assert lengths[0] == pytest.approx(2.0 * lengths[1], abs=0.1) and lengths[2] == 0.0
    assert nice_ticks(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
