"""Checker of model files, with NumPy alone: ``python checker.py MODEL.npz DATA.csv``; docs/verifier.md says how."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import namedtuple
from math import fsum, isclose, isinf, prod
from typing import Any

import numpy as np

ULP, TINY, AGREED, DOUBT, UNLIKE, VAGUE = 2.0**-53, 1e-300, 4.0, 64.0, 1e-9, 1e-3
"""The last four: bounds on rounding between equal values, and where there is doubt; shares: equal sums, hidden gaps."""
Formula = namedtuple("Formula", "ridge variance mean weight loss threshold sharpness", defaults=(1.0, 1.0))
"""``ridge/2 |w|^2 + variance Var(z) - mean mean(z) + weight sum c loss(z)``, as the papers have it."""
OBJECTIVE_FORMULAS = {
    "svm": lambda p, m: Formula(1.0, 0.0, 0.0, p["C"], "hinge"),
    "ldm": lambda p, m: Formula(1.0, 2 * p["lambda1"], p["lambda2"], p["C"], "hinge"),
    "lsvm": lambda p, m: Formula(1.0, 0.0, 0.0, p["nu"] / 2, "squared hinge"),
    "lssvm": lambda p, m: Formula(1.0, 0.0, 0.0, p["C"] / 2, "squared"),
    "lsldm": lambda p, m: Formula(1.0, p["lambda2"] / 2, p["lambda1"], p["C"] / 2, "squared"),
    "l2lr": lambda p, m: Formula(2 * p["lam"], 0.0, 0.0, 1 / m, "logistic", 0.0),
    "mlr": lambda p, m: Formula(2 * p["lam"], 0.0, 0.0, 1 / m, "logistic", 1.0, p["alpha"]),
}


class Finding(Exception):
    """Finding that ends a check: the exit code, 1 (refuted) or 2 (cannot check), and what was found."""


class Rounded:
    """Numbers, and a bound on what rounding has done to each: every operation widens it, by more than its own."""

    def __init__(self, value: Any, off: Any = 0.0) -> None:
        self.value, self.off = np.asarray(value, float), np.broadcast_to(off, np.shape(value))

    def __add__(self, other: Any) -> Rounded:
        other = other if isinstance(other, Rounded) else Rounded(other)
        return Rounded(value := self.value + other.value, (self.off + other.off) * (1 + 8 * ULP) + 2 * ULP * abs(value))

    def __mul__(self, other: Any) -> Rounded:
        other = other if isinstance(other, Rounded) else Rounded(other)
        value, off = self.value * other.value, self.off * abs(other.value) + (abs(self.value) + self.off) * other.off
        return Rounded(value, off * (1 + 8 * ULP) + 6 * ULP * abs(value) + TINY)

    def __matmul__(self, other: Rounded) -> Rounded:
        size, others = abs(self.value), abs(other.value) + other.off
        off = 1.01 * ((size.shape[-1] + 2) * ULP * size + self.off) @ others + 1.01 * (size @ other.off)
        return Rounded(self.value @ other.value, off + TINY)

    __radd__, __rmul__, __array_ufunc__ = __add__, __mul__, None

    def total(self) -> Rounded:
        return Rounded(value := fsum(self.value.flat), fsum(self.off.flat) * (1 + 8 * ULP) + 2 * ULP * abs(value))

    def require(self, name: str, stored: float, doubt: float = 0.0) -> None:
        """Raise a finding unless rounding, and doubt of its sign, explain how far a stored value is from this one."""
        if not abs(stored - self.value - doubt / 2) <= AGREED * self.off + abs(doubt) / 2:
            raise Finding(1, f"its {name} is {stored:.17g}, and here {self.value:.17g} (rounding {self.off:.2g})")


def kernel_matrix(X: np.ndarray, kernel: str, params: dict[str, Any]) -> Rounded:
    """Matrix of a kernel's values."""
    if kernel == "poly":
        return prod([Rounded(X) @ Rounded(X.T) * params["gamma"] + params["coef0"]] * params["degree"])
    Z = Rounded(X) + -X.mean(axis=0)
    inner = Z @ Rounded(Z.value.T, Z.off.T)
    size, off = np.diag(inner.value), np.diag(inner.off)
    power = (Rounded(size[:, None], off[:, None]) + Rounded(size, off) + inner * -2.0) * -params["gamma"]
    value = np.exp(np.minimum(power.value, 0.0))
    return Rounded(value, value * (np.expm1(np.minimum(power.off, 50.0)) * 1.01 + 8 * ULP))


class CheckedColumn(namedtuple("CheckedColumn", "formula X K y c bias m kappa")):
    """One class (y = 1) against the others (y = -1): its objective and dual over counts c > 0 of rows, m in all."""

    def function(self, alpha: Any, w: Any = None) -> tuple[Rounded, Rounded]:
        """Values at the rows, and |w|^2, of w = sum alpha_i phi(x_i) or of given coefficients w."""
        if self.K is None:
            w = Rounded(self.X.T) @ alpha if w is None else Rounded(w)
            return Rounded(self.X) @ w, (w * w).total()
        return (f := self.K @ alpha), (alpha * f).total()

    def losses(self, z: Rounded) -> Rounded:
        """Losses at margins."""
        F, short = self.formula, z * -1.0 + self.formula.threshold
        if F.loss == "logistic":
            value = np.logaddexp(0.0, F.sharpness * short.value) / F.sharpness
            return Rounded(value, short.off + 8 * ULP * (value + 1 / F.sharpness))
        short = short if F.loss == "squared" else Rounded(np.maximum(short.value, 0.0), short.off)
        return short if F.loss == "hinge" else short * short

    def objective(self, f: Rounded, square: Rounded, b: float) -> Rounded:
        """Objective of a function and an intercept."""
        F, z = self.formula, self.y * (f + b)
        loss, apart = self.losses(z), z + (mean := (self.c * z).total() * (1 / self.m)) * -1.0
        met = isinf(F.weight) and (loss.value <= AGREED * loss.off).all()
        loss = Rounded(0.0) if met else (loss * (F.weight * self.c)).total()
        variance, own = (self.c * apart * apart).total() * (1 / self.m), (self.bias == "regularized") * b * b
        return (square + own) * (F.ridge / 2) + variance * F.variance + mean * -F.mean + loss

    def bound(self, beta: np.ndarray) -> Rounded:
        """Dual value of multipliers (shape (T, m)), made feasible first."""
        F, c, y, free = self.formula, self.c, self.y, self.bias == "free"
        weights, sides, apart = F.weight * c, np.array([[1.0], [-1.0]])[: len(beta)], c * (y - fsum(c * y) / self.m)
        beta = np.clip(beta, 0.0, weights if F.loss in ("hinge", "logistic") else np.inf)
        s = (sides * beta).sum(axis=0) + F.mean * c / self.m
        sigma = self.best_sigma(s) if self.kappa else 0 * y
        for _ in range(4):
            sigma = sigma - c * (fsum(sigma) / self.m)
            excess = fsum(y * (s + sigma)) if free else 0.0
            if self.kappa:
                sigma = sigma - apart * (excess / (apart @ y))
            else:
                room = max(fsum(beta[pushing := sides * y * excess > 0]), abs(excess), TINY)
                beta = np.where(pushing, beta * (1.0 - abs(excess) / room), beta)
                s = (sides * beta).sum(axis=0) + F.mean * c / self.m
        # Exact sums of 0 are near: of sigma less a share of c, moved along `apart`, or one side's multipliers shrunk.
        left = abs(fsum(y * (s + sigma))) + 8 * ULP * fsum(abs(s) + abs(sigma)) if free else 0.0
        along = (self.kappa > 0) * abs(apart) * left / (apart @ y)
        share = (self.kappa == 0) * left / max(min(fsum(beta[sides * y > 0]), fsum(beta[sides * y < 0])), TINY)
        moved = Rounded(sigma, c * (abs(fsum(sigma)) / self.m) + 4 * ULP * abs(sigma) + along)
        duals = Rounded(beta, (share + 4 * ULP) * beta)
        value = (sides * F.threshold * duals).total()
        if F.loss == "logistic":
            p = np.minimum(duals.value / weights, 1.0)
            logs = np.log(np.maximum(p, TINY)), np.log(np.maximum(1 - p, ULP))
            entropy = Rounded(p * logs[0] + (1 - p) * logs[1], (duals.off / weights + 4 * ULP) * (2.0 - sum(logs)))
            value += (entropy * (-weights / F.sharpness)).total()
        elif F.loss != "hinge":
            value += (duals * duals * (-0.25 / weights)).total()
        value += (moved * moved * (-0.5 / ((self.kappa or 1.0) * c))).total()
        alpha = y * (Rounded(s, duals.off.sum(axis=0) + 4 * ULP * abs(s)) + moved) * (1 / F.ridge)
        ones = alpha.total() * float(self.bias == "regularized")
        return value + (self.function(alpha)[1] + ones * ones) * (-F.ridge / 2)

    def best_sigma(self, s: np.ndarray) -> np.ndarray:
        """Multipliers of the variance that suit those of the rest best, by the optimal coefficients for these."""
        X, ones = self.X, np.ones((len(s), int(self.bias != "none")))
        if self.K is not None:
            values, vectors = np.linalg.eigh(self.K.value)
            X = vectors * np.sqrt(np.maximum(values, 0.0))
        R = self.y[:, None] * np.hstack([X, ones])
        ridge = self.formula.ridge * np.append(np.ones(X.shape[1]), ones[0] * (self.bias != "free"))
        centred, weights = R - (self.c @ R) / self.m, self.kappa * self.c
        system = np.diag(ridge) + (centred.T * weights) @ centred
        size = np.sqrt(system.diagonal())
        w = np.linalg.lstsq(system / np.outer(size, size), R.T @ s / size, rcond=None)[0] / size
        return -weights * (centred @ w)

    def check(self, part: dict[str, Any], given: dict[str, Any], stored: float) -> tuple[float, float]:
        """Check one problem's certificate and arrays; returns the objective at zero, and the gap proven here."""
        F, b, alpha, coef = self.formula, given["intercept"], given.get("dual_coef"), given.get("coef", np.empty(0))
        f, square = self.function(Rounded(alpha), coef)
        if alpha is not None:
            ones = np.ones((len(self.y), int(self.bias == "regularized")))
            X, made = np.hstack([self.X[:, : len(coef)], ones]), np.append(coef, b * ones[0])
            share = np.maximum(sizes := abs(X).T @ abs(alpha), 1e-6 * sizes.max(initial=0.0)) * (UNLIKE + stored)
            if not (abs(X.T @ alpha - made) <= share).all():
                raise Finding(1, "its coefficients or intercept are not the sums that its dual coefficients make")
        (square + Rounded(0.0, (stored + ULP) * square.value)).require("squared norm", given["norms"] ** 2)
        upper, lower = self.objective(f, square, b), self.bound(duals := F.ridge * np.atleast_2d(given["duals"]))
        scale = check_gap(part, zero := F.weight * self.m * self.losses(Rounded(0.0)).value, part["gap"] <= part["tol"])
        doubt = [min(DOUBT * one.off, part["objective"] - part["lower_bound"]) for one in (upper, lower)]
        if AGREED * (upper.off + lower.off) > VAGUE * scale:
            raise Finding(2, "its numbers are such that rounding hides what they say")
        upper.require("objective", part["objective"], doubt[0])
        if part["lower_bound"] > lower.value or not self.kappa:
            lower += Rounded(0.0, stored * (scale + fsum(duals.flat)))
            lower.require("lower bound", part["lower_bound"], -doubt[1])
        return zero, max(0.0, float(upper.value + upper.off - lower.value + lower.off) / scale)


def check_gap(record: dict[str, Any], zero: float, verdict: bool) -> float:
    """Check that a certificate's gap and verdict are those of its values; returns what gaps are relative to."""
    upper, lower, gap = record["objective"], record["lower_bound"], record["gap"]
    scale = max(abs(upper), abs(lower) if isinf(zero) else 0.01 * zero, TINY)
    same = lower <= upper and isclose(gap, (upper - lower) / scale, rel_tol=1e-9)
    if not same or record["converged"] != verdict:
        raise Finding(1, f"its gap {gap!r} or its verdict are not those of its values, {(upper - lower) / scale!r}")
    return scale


def read_model(path: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a model file: nothing in it is executed, and pickles are refused."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text, digest = arrays.pop("header").tobytes(), arrays.pop("digest")
        header = json.loads(text, object_hook=lambda one: float(one["number"]) if "number" in one else one)
        flat = ((arrays[name], "C" if arrays[name].flags.c_contiguous else "F") for name in header["arrays"])
        content = text + b"".join(order.encode() + array.tobytes(order) for array, order in flat)
    except Exception as error:
        raise Finding(2, f"{path} is no model file of mdlearn ({error})") from None
    if hashlib.sha256(content).digest() != digest.tobytes() or list(arrays) != list(header["arrays"]):
        raise Finding(1, "its digest is not that of its content")
    return header, arrays


def check_model(path: str, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> str:
    """Check a model file against rows, labels and weights of its fit; returns what is agreed on, else raises."""
    header, arrays = read_model(path)
    name, kernel, whole, params = header["objective"], header["kernel"], header["certificate"], header["params"]
    parts, classes, n = whole["parts"] or [whole], arrays["classes"], arrays["duals"].shape[-1]
    y = np.asarray(y).astype(float if classes.dtype.kind in "biuf" else str)
    c = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    F = OBJECTIVE_FORMULAS.get(name, lambda p, m: Formula(0.0, 0.0, 0.0, 0.0, ""))(params, m := fsum(c))
    others = [header["map"], header["approximation"], header.get("task"), params.get("reduced"), header["version"]]
    known = n and others == [None] * 4 + [5] and {part["kind"] for part in parts} == {"duality gap"}
    known = known and len(classes) == max(len(parts), 2) and (len(parts) == 1 or header["multiclass"] == "ovr")
    known = known and (kernel["name"], kernel["rows"]) in (("linear", "none"), ("rbf", "dense"), ("poly", "dense"))
    if not known or F.ridge <= 0 or (F.weight <= 0 and F.loss != "hinge"):
        raise Finding(2, f"{name} with this kernel, features, classes, parameters or certificate has no formulas here")
    X = np.asarray(X).astype(arrays["intercept"].dtype).astype(float)
    if not np.isin(y, classes).all() or X.shape != (len(y), header["n_features_in"]) or not n == len(y) == len(c):
        raise Finding(1, "its labels, rows or columns are not those of the data")
    same = kernel["name"] == "linear" or np.array_equal(arrays["rows"], X[arrays["support"]])
    if not same or any(params.get(key, value) != value for key, value in kernel["params"].items()):
        raise Finding(1, "its support rows are not those of the data, or its kernel not that of its parameters")
    kept, stored, found = c > 0, np.finfo(arrays["duals"].dtype).eps * (arrays["duals"].dtype != float), []
    X, y, c, kappa = X[kept], y[kept], c[kept], 2 * F.variance / m
    K = None if kernel["name"] == "linear" else kernel_matrix(X, kernel["name"], kernel["params"])
    places: dict[str, Any] = {"coef": (), "intercept": (), "norms": (), "duals": (..., kept), "dual_coef": kept}
    for k, part in enumerate(parts):
        given = {key: arrays[key][k].astype(float)[place] for key, place in places.items() if key in arrays}
        labels = np.where(y == classes[k if len(parts) > 1 else 1], 1.0, -1.0)
        found.append(CheckedColumn(F, X, K, labels, c, header["bias"], m, kappa).check(part, given, stored))
    for key in ("objective", "lower_bound"):
        values = np.array([part[key] for part in parts])
        Rounded(values, 4 * ULP * abs(values)).total().require(f"{key} of all classes", whole[key])
    check_gap(whole, sum(zero for zero, _ in found), all(part["converged"] for part in parts))
    return f"objective {whole['objective']:.12g}, gap {whole['gap']:.3g}, here {max(gap for _, gap in found):.3g}"


def print_verdict(path: str, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> int:
    """Print what the check of a model file found, and return its exit code."""
    try:
        print("agreed:", check_model(path, X, y, weights))
        return 0
    except Finding as finding:
        print("refuted:" if finding.args[0] == 1 else "cannot check this model:", finding.args[1])
        return int(finding.args[0])


if __name__ == "__main__":
    cells = np.loadtxt(sys.argv[2], str, delimiter=",", comments=None, quotechar='"', ndmin=2, encoding="utf-8-sig")
    cells = cells[int(cells[0, 0].strip("+-. ")[:1].isalpha()) :]  # a first line may name the columns; labels come last
    sys.exit(print_verdict(sys.argv[1], cells[:, :-1].astype(float), cells[:, -1], *map(np.loadtxt, sys.argv[3:])))
