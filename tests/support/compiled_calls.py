"""Calls of every compiled function, with arrays of exactly the size that it needs."""

from __future__ import annotations

import numpy as np
from compiled_arrays import (
    ASCENT,
    BLOCKS,
    CENTRED,
    COLUMN,
    ENVELOPES,
    FACE,
    FIXED,
    HINGES,
    KNOWN,
    LOO,
    MULTIPLIERS,
    NARROW,
    PAIRS,
    PATH,
    PIECE,
    POINT,
    QUADRATIC,
    RANGE,
    ROOM,
    STACK,
    TERMS,
    WALK,
    D,
    K,
    M,
    T,
    filled,
    integers,
    one,
)
from scipy.linalg import cython_blas, cython_lapack

from mdlearn._solvers import (
    apg,
    blocks,
    bounded_quadratic,
    cd,
    centred,
    class_pairs,
    csr,
    dual_descent,
    envelopes,
    face_steps,
    gaussian,
    gaussian_tiles,
    hinges,
    interior,
    known_rows,
    lloyd,
    logistic,
    loo_paths,
    narrow_logistic,
    narrow_newton,
    narrow_scatter,
    point_values,
    products,
    reading,
    sgd,
    smw,
)

SYRK, POSV = cython_blas.__pyx_capi__["dsyrk"], cython_lapack.__pyx_capi__["dposv"]


def sweep_gram(matrix, kept, order, **column):
    cd.sweep(cd.GramRows(matrix, kept), cd.Problem(**column), order)


def sweep_dense(matrix, kept, order, **column):
    cd.sweep(cd.DenseRows(matrix, kept), cd.Problem(**column), order)


def sweep(data, indices, indptr, order, **state):
    centred.sweep(data, indices, indptr, centred.Centred(**state), order)


def sweep_blocks(F, place, blocks, couplings, order, **state):
    centred.sweep_blocks(F, place, blocks, couplings, centred.Centred(**state), order)


def steps(function):
    return lambda **box: function(bounded_quadratic.Box(**box), 30, 1e-12)


def on_stack(function):
    return lambda *, K, spans, starts, target, low, high, square, columns, places, **given: function(
        class_pairs.Pairs(K, spans, starts, target, low, high, 0.5, True, square, columns, places), **given
    )


def steps_on_known_rows(values, place, order, diagonal, columns, own, **given):
    known = known_rows.KnownRows(values, place, order, diagonal, gaussian.GaussianRows(columns, own))
    known.allow(M)
    bounded_quadratic.pairs(bounded_quadratic.Box(known, **given), 30, 1e-12)


def steps_on_selected_rows(values, place, order, diagonal, columns, own, index):
    whole = known_rows.KnownRows(values, place, order, diagonal, gaussian.GaussianRows(columns, own))
    n = index.shape[0]
    known = known_rows.KnownRows(
        np.empty((n, n)), np.full(n, -1), np.arange(n), np.ones(n), known_rows.SelectedRows(whole, index)
    )
    known.allow(n)
    given = np.ones(n), 0.0, np.zeros(n), np.zeros(n), np.ones(n), np.zeros(n), np.linspace(1.0, -1.0, n)
    bounded_quadratic.doubles(bounded_quadratic.Box(known, *given, np.empty((4, n))), 30, 1e-12)


def moving(function):
    """A call with a face on which all rows move."""

    def call(A=None, sides=None, solved=None, **face):
        given = bounded_quadratic.Face(**face)
        assert bounded_quadratic.rows(given) == M
        if A is not None:
            function(given, A, sides, 0.0)
        elif solved is not None:
            function(given, solved)

    return call


def along_path(function):
    """A call with a path of the interior point engine."""

    def call(**given):
        path = interior.Path(*(given.pop(name) for name in PATH))
        function(path, **given)

    return call


def walk(y, offset, terms, u, total):
    return sgd.Problem(y, offset, terms, 0.1, 0.1, 0.01, 1.0), sgd.Walk(0.1, 3, u, total)


def walk_dense(X, i, j, **state):
    sgd.walk_dense(X, *walk(**state), i, j)


def walk_csr(data, indices, indptr, i, j, **state):
    sgd.walk_csr(data, indices, indptr, *walk(**state), i, j)


SWEEPS = 2, 0.5, M, 0.25, 0.1, 0.0, 1.0


def ascent(w, records, order, free, *variance):
    return dual_descent.Ascent(records, w, order, free, 1.0, 1.0, 3, *variance)


def visit_dense(X, **given):
    dual_descent.dense(X, ascent(**given), True, 0, M)


def visit_csr(data, indices, indptr, **given):
    dual_descent.sparse(data, indices, indptr, ascent(**given), True, 0, M)


def pass_dense(X, **given):
    dual_descent.dense_passes(X, ascent(**given), 2, 0.5, M)


def pass_csr(data, indices, indptr, **given):
    dual_descent.sparse_passes(data, indices, indptr, ascent(**given), 2, 0.5, M)


def survey_dense(X, **given):
    dual_descent.dense_survey(X, ascent(**given), 0, M)


def survey_csr(data, indices, indptr, **given):
    dual_descent.sparse_survey(data, indices, indptr, ascent(**given), 0, M)


def ascend_dense(X, **given):
    dual_descent.dense_sweeps(X, ascent(**given), 3, 2, dual_descent.Sweeps(*SWEEPS))


def ascend_csr(data, indices, indptr, **given):
    dual_descent.sparse_sweeps(data, indices, indptr, ascent(**given), 3, 2, dual_descent.Sweeps(*SWEEPS))


def sum_up_ascent(w, records, order, free, centre, margins):
    varied = ascent(w, records, order, free, centre, margins)
    dual_descent.sums_of_sweep(varied, dual_descent.Sweeps(*SWEEPS))


def smooth_step(square, held, columns, **given):
    room = logistic.Work(square, held, columns, SYRK, POSV)
    logistic.newton_step(
        **given,
        sharpness=1.0,
        kink=1.0,
        room=room,
        loss=1.0,
        rounding=0.0,
        least_bend=0.0,
        full=0.3,
        close=0.1,
        left_over=1e-14,
    )


def newton_steps(B, A, fixed, w, z, u, alpha, free, centre, steepness, caps, square, held, columns, change):
    room = envelopes.Work(M, D, square, held, columns, change, SYRK, POSV)
    envelopes.newton_steps(B, A, fixed, centre, steepness, caps, 1.0, w, z, u, alpha, free, room, 5, 0.0, 1e-3)


def stage(B, A, L, fixed, w, z, u, alpha, free, centre, steepness, caps, softness, square, held, columns, change):
    room = envelopes.Work(M, D, square, held, columns, change, SYRK, POSV)
    rest = 3, 1.0, 0.05, 5.0, 2, 0.01, 1e-3
    envelopes.stage(B, A, L, fixed, centre, steepness, caps, softness, 1.0, w, z, u, alpha, free, room, *rest)


def narrow_steps(w, centre, counts, beta, alpha, sigma, made_of, **given):
    newton = narrow_newton.NarrowNewton(
        alpha=made_of, kink=1.0, squared=False, growth=3.0, solved=0.2, close=1e-3, **given
    )
    newton.begin(w, centre, 0.5, counts, 2.0)
    newton.steps(5, 0.0, 0.0)
    newton.point(w, beta, alpha, sigma, counts, 0.5)


def narrow_squared_steps(centre, counts, beta, alpha, sigma, made_of, shared, w, **given):
    none, rest = np.empty((0, 0)), {"growth": 3.0, "solved": 0.2, "close": 1e-3}
    newton = narrow_newton.NarrowNewton(alpha=made_of, A=none, L=none, kink=1.0, squared=True, **rest, **given)
    for _ in range(2):  # one column writes the shared factor, the other reads it
        newton.begin(None, centre, 0.5, counts, 0.0)
        newton.share_first_factor(shared)
        newton.steps(5, 0.0, 0.0)
    newton.point(w, beta, alpha, sigma, counts, 0.0)


def narrow_logistic_steps(start, beta, alpha, made_of, w, shared, **given):
    rest = {"free": True, "least_bend": 0.1, "full": 0.3, "close": 0.1, "rounding": 1e-13, "left_over": 1e-14}
    newton = narrow_logistic.NarrowLogistic(
        alpha=made_of, sharpness=2.0, kink=1.0, **rest, stride=1, far=0.1, price=0.0, **given
    )
    for _ in range(2):  # one column writes the shared factor, the other reads it
        newton.begin(start)
        newton.share_first_factor(shared)
    newton.steps(5, 0.0, 0.0)
    newton.point(w, beta, alpha)


CASES = {
    "apg.slopes": (apg.slopes, {"F": one(M, K), **TERMS, "rest": one(3, K)}),
    "apg.bends": (apg.bends, {"F": one(M, K), **TERMS}),
    "apg.pair_slopes": (apg.pair_slopes, {**PAIRS, "alpha": 1.0, "threshold": 2.0}),
    "apg.pair_bends": (apg.pair_bends, {**PAIRS, "alpha": 1.0, "threshold": 2.0, "reach": 0.5}),
    "apg.shrink": (apg.shrink, {"V": one(M, K), "by": one(M)}),
    "blocks.dot": (blocks.dot, {"F": one(M, D), "starts": BLOCKS["starts"], "W": one(K, D), "out": one(M), **RANGE}),
    "blocks.adjoint": (blocks.adjoint, {"F": one(M, D), "starts": BLOCKS["starts"], "owner": integers(M, M),
                                        "v": one(M), "out": one(K, D), **RANGE}),
    "blocks.factor": (blocks.factor, {"B": one(M, D), **BLOCKS, "N": np.zeros(41), "first": 0, "last": K}),
    "blocks.solve": (blocks.solve, {"N": one(41), **BLOCKS, "v": one(M)}),
    "cd.sweep": (sweep_gram, {"matrix": one(M, M), "kept": one(M), "order": integers(30, T * M), **COLUMN}),
    "cd.sweep dense": (sweep_dense, {"matrix": one(M, D), "kept": one(D), "order": integers(30, T * M), **COLUMN}),
    "centred.sweep": (sweep, {**filled(), "order": integers(30, T * M), **CENTRED}),
    "centred.sweep_blocks": (sweep_blocks, {"F": one(M, D), "place": integers(M, M)[:, None],
                                            "order": integers(30, T * M),
                                            "blocks": integers(M, K)[:, None], "couplings": one(K, K), **CENTRED,
                                            "u": np.zeros(K * D)}),
    "csr.dot": (csr.dot, {**filled(), "w": one(D), "out": one(M), **RANGE}),
    "csr.adjoint": (csr.adjoint, {**filled(np.float32, np.int64), "v": one(M), "out": one(D), **RANGE}),
    "csr.column_squares": (csr.column_squares, {**filled(np.float32, np.int64), "v": one(M), "out": one(D), **RANGE}),
    "csr.columns": (csr.columns, {**filled(np.float32, np.int64), "T": one(D, M), **RANGE}),
    "csr.dot_and_adjoint": (csr.dot_and_adjoint, {**filled(), "w": one(D), "last_w": 1.0, "weights": one(M),
                                                  "z": one(M), "out": one(D), **RANGE}),
    "csr.gather": (csr.gather, {"X": one(M, D), "indptr": np.zeros(M + 1, dtype=np.int32), "data": one(M * D),
                                "indices": np.zeros(M * D, dtype=np.int32)}),
    "csr.write": (csr.write, {**filled(), "rows": np.arange(M), "out": one(M, D)}),
    "csr.row_squares": (csr.row_squares, {k: v for k, v in filled(np.float32, np.int64).items() if k != "indices"}
                        | {"out": one(M), **RANGE}),
    "csr.squares": (csr.squares, {**filled(np.float32), "weights": one(D), "out": one(M), **RANGE}),
    "dual_descent.dense": (visit_dense, {"X": one(M, D), "w": one(D + 1), **ASCENT}),
    "dual_descent.sparse": (visit_csr, {**filled(), "w": one(D + 1), **ASCENT}),
    "dual_descent.dense_passes": (pass_dense, {"X": one(M, D), "w": one(D + 1), **ASCENT}),
    "dual_descent.sparse_passes": (pass_csr, {**filled(), "w": one(D + 1), **ASCENT}),
    "dual_descent.dense_survey": (survey_dense, {"X": one(M, D), "w": one(D + 1), **ASCENT}),
    "dual_descent.dense_sweeps": (ascend_dense, {"X": one(M, D), "w": one(D + 1), **ASCENT}),
    "dual_descent.sparse_sweeps": (ascend_csr, {**filled(), "w": one(D + 1), **ASCENT}),
    "dual_descent.sparse_survey": (survey_csr, {**filled(), "w": one(D + 1), **ASCENT}),
    "dual_descent.sums_of_sweep": (sum_up_ascent, {"w": one(D + 1), "centre": one(D + 1), "margins": one(M), **ASCENT}),
    "envelopes.slopes": (envelopes.slopes, {
        "z": one(M), **ENVELOPES, "kink": 1.0, "u": one(M), "free": integers(M, M)}),
    "envelopes.minimum": (envelopes.minimum, {"z": one(M), "dz": one(M), **ENVELOPES, "kink": 1.0, "u": one(M),
                                              "start": -1.0, "bend": 1.0, "close": 0.1}),
    "envelopes.newton_steps": (newton_steps, {
        "B": one(M, D), "A": np.eye(D), "fixed": one(D), "w": one(D), "z": one(M), "u": one(M), "alpha": one(M),
        "free": integers(M, M), **ENVELOPES, **ROOM}),
    "envelopes.stage": (stage, {"B": one(M, D), "A": np.eye(D), "L": np.eye(D), "fixed": one(D), "w": one(D),
                                "z": one(M), "u": one(M), "alpha": one(M), "free": integers(M, M), **ENVELOPES,
                                "softness": one(M), **ROOM}),
    "face_steps.ascend": (face_steps.ascend, {"L": np.eye(M), "b": np.zeros(M), "p": 2.0 * one(M), "caps": one(M),
                                              "met": one(M, M), "order": integers(M, M)}),
    "face_steps.step_over_dense": (face_steps.step_over_dense, {
        "X": one(M, D), "records": one(M, 8), "w": one(D + 1), "kink": 1.0, "border": 1.0, "trace": 1e-9,
        "M": one(4, 4), "numbers": one(6, 4), "met": one(K, 4),
        "places": np.zeros(4 + K, dtype=np.int64), "moved": one(D + 1)}),
    "bounded_quadratic.rows": (moving(bounded_quadratic.rows), FACE),
    "bounded_quadratic.system": (moving(bounded_quadratic.system), {**FACE, "A": one(M, M), "sides": one(2, M)}),
    "bounded_quadratic.step": (moving(bounded_quadratic.step), {**FACE, "solved": one(2, M)}),
    "bounded_quadratic.doubles": (steps(bounded_quadratic.doubles), QUADRATIC),
    "bounded_quadratic.pairs": (steps(bounded_quadratic.pairs), QUADRATIC),
    "known_rows.KnownRows": (steps_on_known_rows,
                             {**{k: v for k, v in QUADRATIC.items() if k != "H"}, **KNOWN}),
    "known_rows.SelectedRows": (steps_on_selected_rows, {**KNOWN, "index": integers(4, M)}),
    "class_pairs.ascend": (on_stack(class_pairs.ascend), {**STACK, "u": one(18), "levels": one(T), "tol": 1e-9,
                                                          "first": 0, "most": 1000}),
    "class_pairs.values": (on_stack(class_pairs.values), {**STACK, "u": one(13), "first": 1, "out": one(2, 8)}),
    "bounded_quadratic.gather": (bounded_quadratic.gather,
                                 {"H": one(M, D), "rows": integers(4, 9)[::-1] + 5, "columns": integers(3, D) + 2,
                                  "out": one(4, 3), "start": 0, "stop": 4}),
    "gaussian.exponentials": (gaussian.exponentials, {"K": one(M, D)}),
    "gaussian_tiles.gaussians": (gaussian_tiles.gaussians, {
        "K": one(M, D), "left": one(M), "right": one(D), "scale": 0.5}),
    "gaussian_tiles.add_products": (gaussian_tiles.add_products, {
        "A": one(M, D), "B": one(D, K), "left": one(M), "right": one(K), "scale": 0.5, "above": one(M),
        "beside": one(K), "across": one(M), "down": one(K)}),
    "gaussian.block": (gaussian.block, {"A": one(M, D), "B": one(D, K), "K": one(M, K)}),
    "gaussian.add_products": (gaussian.add_products, {"A": one(M, D), "B": one(D, K), "coef": one(K), "out": one(M)}),
    "gaussian.add_both_sides": (gaussian.add_both_sides, {
        "K": np.ones((M, D), dtype=np.uint16), "left": np.ones(M, dtype=np.float32),
        "right": np.ones(D, dtype=np.float32), "across": one(M), "down": one(D)}),
    "hinges.along": (hinges.along, {
        **{name: one(M) for name in ("z", "dz", "counts", "offset")}, "terms": one(3, T), "t": 0.5}),
    "hinges.loss": (hinges.loss, {"z": one(M), "counts": one(M), "side": 1.0, "threshold": 0.7, "squared": True}),
    "hinges.squares": (hinges.squares, {"beta": one(M), "counts": one(M), "scale": 0.5}),
    "interior.smoothed": (interior.smoothed, {
        **HINGES, "width": 0.5, "beta": one(T, M), "force": one(M), "weight": one(M), **PIECE}),
    "interior.along": (interior.along, {**HINGES, "change": one(M), "step": 0.5, "width": 0.5, **PIECE}),
    "interior.weigh": (along_path(interior.weigh), {**PATH, "d": one(T, M), "weight": one(M), **PIECE}),
    "interior.forces": (along_path(interior.forces), {**PATH, "kinks": one(T, M), "sides": np.ones(T), "z": one(M),
                                                      "centring": 0.1, "d": one(T, M), "h": one(T, M),
                                                      "force": one(M), **PIECE}),
    "interior.slacks": (along_path(interior.slacks), {**PATH, "centring": 0.1, "change": one(T, M), **PIECE}),
    "interior.ahead": (along_path(interior.ahead), {**PATH, "step": 0.5, **PIECE}),
    "interior.advance": (along_path(interior.advance), {**PATH, "step": 0.5, **PIECE}),
    "lloyd.assign": (lloyd.assign, {"X": one(M, D), "centers": one(K, D), "rows": integers(M, M), "products": one(M, K),
                                    "halves": one(K), "unit": 1.0, "margin": 1e-9, "counts": one(M), "upper": one(M),
                                    "lower": one(M), "labels": integers(M, K), "sums": one(K, D)}),
    "lloyd.add": (lloyd.add, {"X": one(M, D), "counts": one(M), "labels": integers(M, K),
                              "wanted": np.ones(K, dtype=np.uint8), "sums": one(K, D), **RANGE}),
    "logistic.slopes": (logistic.slopes, {"z": one(M), "caps": one(M), "sharpness": 2.0, "kink": 1.0, "u": one(M),
                                          "bends": one(M)}),
    "logistic.loss": (logistic.loss, {"z": one(M), "counts": one(M), "sharpness": 2.0, "kink": 1.0}),
    "logistic.entropy": (logistic.entropy, {"beta": 0.4 * one(M), "caps": one(M)}),
    "logistic.newton_step": (smooth_step, {
        "B": one(M, D), "ridge": one(D), "fixed": one(D), "caps": one(M), "w": one(D), "z": one(M), "u": one(M),
        "bends": one(M), "alpha": one(M), "beta": one(M), "square": np.zeros((D, D)), "held": np.zeros((M, D)),
        "columns": np.zeros((4, M))}),
    "logistic.minimum": (logistic.minimum, {"z": one(M), "dz": one(M), "caps": one(M), "sharpness": 2.0, "kink": 1.0,
                                            "u": one(M), "start": -1.0, "bend": 1.0, "close": 0.1}),
    "loo_paths.follow_loo_paths": (loo_paths.follow_loo_paths, LOO),
    "narrow_logistic.NarrowLogistic": (
        narrow_logistic_steps,
        {"T": one(D, 16), "labels": np.ones(M), "caps": one(M), "made_of": one(M), "fixed": one(D),
         "table": np.zeros((13, 16)), "vectors": np.zeros((12, D + 8)), "M": np.zeros((D, D + 8)),
         "room": np.zeros((D + 8, 256)), "start": one(D), "w": one(D), "beta": one(M), "alpha": one(M),
         "shared": np.zeros(2 + 16 + 2 * D * (D + 8)), "S": np.float32(one(D, 16))}),
    "narrow_newton.NarrowNewton": (
        narrow_steps,
        {**NARROW, "A": np.eye(D), "L": np.eye(D), "w": one(D), "centre": one(M), "counts": one(M), "beta": one(M),
         "alpha": one(M), "sigma": one(M)}),
    "narrow_newton.NarrowNewton squared": (
        narrow_squared_steps,
        {**NARROW, "centre": one(M), "counts": one(M), "shared": np.zeros(2 + 16 + 2 * D * (D + 8)), "w": one(D),
         "beta": one(M), "alpha": one(M), "sigma": one(M)}),
    "narrow_scatter.columns": (narrow_scatter.columns, {"X": one(M, D), "T": np.zeros((D, 16))}),
    "narrow_scatter.scatter": (narrow_scatter.scatter, {"T": one(D, 16), "counts": one(M), "weights": one(16), "about":
                               np.zeros((D, D + 8)), "room": np.zeros((D + 8, 256)), "mean": one(D)}),
    "narrow_scatter.quadratic": (
        narrow_scatter.quadratic,
        {"T": one(D, 16), "counts": one(M), "labels": np.ones(M), "mean": one(D), "about": one(D, D + 8), "kappa": 0.1,
         "weights": one(16), "room": one(D + 2, D + 8), "A": np.eye(D), "L": np.eye(D), "v": one(D)}),
    "point_values.values": (point_values.values, {
        "X": one(M, D), **POINT, **MULTIPLIERS, "w": one(D), "b": 0.5, "own": one(M), "sums": one(3, D)}),
    "point_values.feasible": (point_values.feasible, {**POINT, **MULTIPLIERS}),
    "point_values.at_multipliers": (point_values.at_multipliers, {**POINT, "b": 0.5, "w": one(D)}),
    "products.add_dense": (products.add_dense, {"B": one(M, D), "weight": 0.5, "M": one(D, D), "capsule": SYRK}),
    "products.write_symmetric": (products.write_symmetric, {
        "values": one(2, 3), "G": one(5, 5), "row": 2, "column": 0}),
    "products.add_rows": (products.add_rows, {
        "G": one(M, D), "rows": integers(M, M), "weights": one(M), "out": one(D)}),
    "products.add_sparse": (products.add_sparse, {**filled(), "weights": one(M), "M": one(D + 1, D + 1), **RANGE,
                                                  "bias": True, "most": 1 << 20}),
    "reading.row_squares": (reading.row_squares, {"X": one(M, D), "out": one(M)}),
    "reading.two_labels": (reading.two_labels, {"labels": one(M), "codes": integers(M, M)}),
    "sgd.walk_dense": (walk_dense, {"X": one(M, D), **WALK}),
    "sgd.walk_csr": (walk_csr, {**filled(), **WALK}),
    "smw.advance": (smw.advance, {**FIXED, "alpha": 0.5, "z": one(T, M), "u": one(T, M), "f": one(M)}),
    "smw.multipliers": (smw.multipliers, {**FIXED, "u": one(T, M), "beta": one(T, M), "alpha": one(M)}),
}  # fmt: skip
