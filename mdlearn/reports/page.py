"""The page of a report: what a model is, how good it is, and what is proven of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from mdlearn.data.labels import check_labels
from mdlearn.data.validation import check_weights, validated_column_names
from mdlearn.errors import UnprovenWarning
from mdlearn.margins.statistics import cumulative_curve, mean, minimum, variance
from mdlearn.model.model import Model
from mdlearn.output_files import output_file_target, replace_file
from mdlearn.reports.svg import bars, curves
from mdlearn.selection.cross_validation import cross_validate

DOUBTFUL_ROWS, SHOWN_WEIGHTS, CALIBRATION_BINS = 10, 20, 10
"""Rows next to the boundary, coefficients and bins of probabilities that a report shows."""
LOO_ROWS = 500
"""Rows up to which a report has the error of leave-one-out."""
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #ccc}
table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}
th{font-weight:600}td.n{text-align:right;font-variant-numeric:tabular-nums}
svg{max-width:36rem;width:100%;height:auto;font-size:11px}svg text{fill:currentColor}.grid{stroke:#8884;stroke-width:1}
pre{background:#8881;padding:.7rem;overflow-x:auto}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#1b1b1b}h2{border-color:#555}}
"""


def report(
    model: Model, X: Any, y: Any, path: str | os.PathLike[str] = "report.html", sample_weight: Any = None
) -> str:
    """Write one HTML file that says what a model is, how good it is on some rows, and what is proven of it.

    The file needs nothing else: style and pictures are inside, and there is no script. It has data, parameters,
    certificate, margins, the way of the gap, the rows next to the boundary with proven bounds of their decision values,
    calibration where there are probabilities, the largest coefficients of a linear kernel, the accuracy of
    leave-one-out for up to 500 rows, and the call that fits the model again, but for weights.

    Parameters
    ----------
    model : Model
        A classifier.
    X : array-like or sparse matrix of shape (n, d)
        Rows, of the training or others.
    y : array-like of shape (n,)
        Their labels, all among `model.classes_`.
    path : path, default "report.html"
        File to write; it is replaced as a whole or not at all.
    sample_weight : array-like of shape (n,), optional
        Repetition counts. Default: 1 for every row.

    Returns
    -------
    str
        The path.

    Raises
    ------
    TypeError
        For a model of another task than classification.
    ValueError
        As `Model.score` does.
    OSError
        When the file cannot be written.
    """
    if not isinstance(model, Model) or model.task != "classification":
        raise TypeError(f"report needs a fitted classifier, as mdlearn.fit returns it; got {type(model).__name__}")
    target = output_file_target(path)
    content = _Report(model, X, y, sample_weight).page().encode()
    replace_file(target, lambda file: file.write(content))
    return os.fspath(path)


class _Report:
    """Report of a model on some rows, section by section."""

    def __init__(self, model: Model, X: Any, y: Any, sample_weight: Any) -> None:
        self.model, self.X, self.y = model, X, y
        self.f = model.decision_function(X)
        classes, codes = check_labels(y, self.f.shape[0])
        self.labels = classes[codes]
        self.weights = check_weights(sample_weight, self.f.shape[0])
        self.accuracy = model.score(X, y, sample_weight)
        self.margins = model.margins(X, y)
        self.given = sample_weight

    def page(self) -> str:
        """Return the whole page."""
        model = self.model
        title = f"{model.objective} with kernel {model.kernel.name}"
        sections: list[tuple[str, Callable[[], str]]] = [
            ("Data", self.data),
            ("Model", self.parameters),
            ("Certificate", self.certificate),
            ("Margins", self.margin_curve),
            ("Way of the gap", self.history),
            ("Rows next to the boundary", self.doubtful),
            ("Calibration", self.calibration),
            ("Coefficients", self.coefficients),
            ("Leave-one-out", self.loo),
            ("How to fit it again", self.code),
        ]
        body = "".join(
            f"<h2>{name}</h2>{found}" for name, found in ((name, make()) for name, make in sections) if found
        )
        head = (
            f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        )
        return (
            f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head>"
            f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
        )

    def data(self) -> str:
        """Rows by class, and how many of them the model labels right."""
        predicted, rows = self.model.predict(self.X), []
        for label in self.model.classes_:
            own = self.labels == label
            right = float(self.weights[own & (predicted == label)].sum())
            total = float(self.weights[own].sum())
            rows.append([str(label), int(own.sum()), f"{total:g}", f"{right / total:.4f}" if total else ""])
        summary = f"{self.f.shape[0]} rows of {self.model.n_features_in_} columns; accuracy {self.accuracy:.4f}."
        return f"<p>{summary}</p>" + _table(["class", "rows", "weight", "share labelled right"], rows)

    def parameters(self) -> str:
        """Parameters, engine and support rows."""
        model = self.model
        own = [*model.params.items(), ("bias", model.bias), ("multiclass", model.multiclass)]
        own += [("engine", f"{model.solver}: {model.solver_reason}"), ("support rows", model.support_.shape[0])]
        return _table(
            ["", ""], [[name, f"{value:.6g}" if isinstance(value, float) else str(value)] for name, value in own]
        )

    def certificate(self) -> str:
        """The values of the certificate, and of how many labels it is a proof."""
        c = self.model.certificate
        rows = [[name, f"{getattr(c, name):.10g}"] for name in ("objective", "lower_bound", "gap", "tol", "distance")]
        rows.append(["converged", c.verdict])
        why = self.model.unproven
        if not why:
            share = float(np.average(self.model.certified(self.X), weights=self.weights))
            rows.append(["labels proven to be those of the exact optimum", f"{share:.2%}"])
        return _table(["", ""], rows) + (f"<p>Labels are not proven: {escape(why)}.</p>" if why else "")

    def margin_curve(self) -> str:
        """Picture and numbers of the margins."""
        z, share = cumulative_curve(self.margins, self.given)
        statistics = [("mean", mean), ("variance", variance), ("smallest", minimum)]
        rows = [[name, f"{value(self.margins, self.given):.6g}"] for name, value in statistics]
        return curves([("", z, share)], "margin", "share of rows at most there") + _table(["", ""], rows)

    def history(self) -> str:
        """Picture of the gap over the reports, of every problem up to six."""
        lines = []
        for problem in sorted({state.problem for state in self.model.history})[:6]:
            gaps = np.array([state.gap for state in self.model.history if state.problem == problem])
            gaps = np.log10(np.maximum(gaps[np.isfinite(gaps)], 1e-16))
            if gaps.shape[0] > 1:  # one point is no way
                lines.append((f"problem {problem}", np.arange(1.0, gaps.shape[0] + 1.0), gaps))
        return curves(lines, "report", "log10 of the gap") if lines else ""

    def doubtful(self) -> str:
        """Rows whose decision is the narrowest, with what is proven of it."""
        f = self.f
        best = np.sort(f, axis=1) if f.ndim > 1 else None
        lead = np.abs(f) if best is None else best[:, -1] - best[:, -2]
        order = np.argsort(lead, kind="stable")[:DOUBTFUL_ROWS]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnprovenWarning)
            lower, upper = self.model.decision_bounds(self.X)
            certain = self.model.certified(self.X)
        predicted = self.model.predictions(f)
        rows = []
        for i in order:
            here = (i, predicted[i]) if f.ndim == 1 else (i, int(f[i].argmax()))
            value, low, high = (a[i] if f.ndim == 1 else a[here] for a in (f, lower, upper))
            between = f"{low:.6g} to {high:.6g}" if np.isfinite(low) else "not proven"
            rows.append(
                [int(i), str(self.labels[i]), str(predicted[i]), f"{value:.6g}", between, "yes" if certain[i] else "no"]
            )
        return _table(["row", "label", "predicted", "decision value", "of the exact optimum", "label certain"], rows)

    def calibration(self) -> str:
        """Probabilities of the second class, or of the predicted one, beside what came true; empty without any."""
        if not self.model.probabilities or not hasattr(self.model, "predict_proba"):
            return ""
        P = self.model.predict_proba(self.X)
        p = P[:, 1] if P.shape[1] == 2 else P.max(axis=1)
        hit = self.labels == (self.model.classes_[1] if P.shape[1] == 2 else self.model.classes_[P.argmax(axis=1)])
        bins, rows = np.minimum((p * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1), []
        for k in range(CALIBRATION_BINS):
            own = (bins == k) & (self.weights > 0)
            if own.any():
                said, came = (float(np.average(one[own], weights=self.weights[own])) for one in (p, hit.astype(float)))
                rows.append(
                    [
                        f"{k / CALIBRATION_BINS:g} to {(k + 1) / CALIBRATION_BINS:g}",
                        int(own.sum()),
                        f"{said:.3f}",
                        f"{came:.3f}",
                    ]
                )
        return _table(["probability", "rows", "mean", "share that came true"], rows)

    def coefficients(self) -> str:
        """Picture of the largest coefficients of a linear kernel, each of the class where it is largest."""
        if self.model._coef is None or self.model._map is not None:
            return ""
        coef, names = self.model.coef_, validated_column_names(self.X)
        largest = np.abs(coef).argmax(axis=0)
        values = coef[largest, np.arange(coef.shape[1])]
        order = np.argsort(-np.abs(values), kind="stable")[:SHOWN_WEIGHTS]
        titles = [names[j] if names else f"column {j}" for j in order]
        if coef.shape[0] == self.model.classes_.shape[0]:
            titles = [f"{name}, {self.model.classes_[largest[j]]}" for name, j in zip(titles, order)]
        return bars(titles, values[order], "largest coefficients")

    def loo(self) -> str:
        """Accuracy of leave-one-out, where the rows are few."""
        model = self.model
        if self.f.shape[0] > LOO_ROWS or model._map is not None or model.kernel.name not in ("linear", "rbf", "poly"):
            return ""
        given: dict[str, Any] = {"bias": model.bias, "multiclass": model.multiclass, "sample_weight": self.given}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = cross_validate(
                    model.objective, self.X, self.y, cv="loo", kernel=model.kernel.name, **given, **self._plain()
                )
        except ValueError as error:
            return f"<p>Not computed: {escape(str(error))}.</p>"
        return f"<p>Accuracy where every row is left out once: {float(np.mean(found.scores)):.4f}.</p>"

    def code(self) -> str:
        """The call that fits the model again, but for weights, and what is no number and no word."""
        model = self.model
        given: dict[str, Any] = {"kernel": model.kernel.name, "bias": model.bias, "multiclass": model.multiclass}
        given |= {"tol": model.certificate.tol, "solver": model.solver, **self._plain()}
        call = f"mdlearn.fit({model.objective!r}, X, y, {', '.join(f'{name}={one!r}' for name, one in given.items())})"
        return f"<pre>import mdlearn\n\nmodel = {escape(call)}</pre>"

    def _plain(self) -> dict[str, Any]:
        """Parameters that a call can be given as they are: numbers and words."""
        return {name: value for name, value in self.model.params.items() if isinstance(value, (bool, int, float, str))}


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of the report's page; numbers stand on the right."""
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{' class=n' if k and _is_number(cell) else ''}>{escape(str(cell))}</td>" for k, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if any(heads) else ''}{body}</table>"


def _is_number(cell: Any) -> bool:
    """Whether a cell of a report's table is a number, or one as text."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
