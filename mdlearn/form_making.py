"""Making the forms of a fit: of all its rows, or of one pair of classes after the other.

What a path hands from point to point is a `PathCache`: an argument of the way from data to form, filled as the way is
gone. A single fit begins with an empty one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.class_pairs import ClassPairProblems
from mdlearn.data.features.feature_map import MappedFeatures, check_feature_map_size
from mdlearn.data.features.gram import (
    CLASS_BLOCK_BYTES,
    SHARING_PAIR_ROWS,
    ClassGramMatrices,
    ClassPairGram,
    FoldGramRows,
    GramMemory,
)
from mdlearn.data.features.kernel_features import Features, KernelFeatures, features_of_kernel
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import Data
from mdlearn.driver.checked_form import check_features, check_form
from mdlearn.driver.driver import Prepared, Starts
from mdlearn.errors import call_with_error_notes, class_is_foreign, steps_with_error_notes
from mdlearn.forms.joint.pair_stack import PairStack, can_stack_pair
from mdlearn.forms.penalised.constraints import Constraints
from mdlearn.forms.problem import Form, as_joint_problem
from mdlearn.forms.proof import Solution, ZeroProof
from mdlearn.numerics.seeds import seeded_rng
from mdlearn.objectives.base import Objective, overrides_objective_base
from mdlearn.objectives.declaration.parameters_and_terms import declared_objective_terms


@dataclass(eq=False)
class PathCache:
    """Cache for making forms: features and prepared work from fit to fit of a path; the last leaves nothing behind."""

    # those of every piece of the data: Gram matrix or kernel columns, clusters, landmarks
    features: dict[int, Features] = field(default_factory=dict)
    pieces: dict[int, Data] = field(default_factory=dict)  # pairs of classes with rows of their own
    # kernel values that pairs of classes share
    classes: dict[str, ClassGramMatrices | None] = field(default_factory=dict)
    prepared: Prepared = field(default_factory=Prepared)  # what engines have prepared
    starts: Starts | None = None  # where problems may begin
    shared: bool = False  # whether it serves several fits
    memory: GramMemory | None = None  # of kernel matrices
    fold: FoldGramRows | None = None  # rows of these that other folds share


@dataclass(eq=False)
class FormMaker:
    """Maker of the forms of a fit, one after the other."""

    data: Data
    pairs: ClassPairProblems | None  # data of every pair of classes; None: all rows are one problem
    task: Objective
    params: dict[str, Any]  # its parameters, complete
    kernel: Kernel
    bias: str
    multiclass: str
    seed: int
    handed: PathCache
    constraints: Constraints | None  # on the coefficients, by the caller of the fit
    solve: Callable[[Form], list[Solution]]  # solves another form, for objectives that need that first
    # raises ValueError for a form that the engine cannot take; None: it takes the first
    check: Callable[[Form], None] | None = None

    def __len__(self) -> int:
        return 1 if self.pairs is None else len(self.pairs)

    def make(self, j: int) -> Generator[None, Any, Form]:
        """Make a form, in interruptible pieces."""
        task, params, kernel, handed = self.task, self.params, self.kernel, self.handed
        pairs, place, foreign = self.pairs, kernel.explicit, class_is_foreign(type(task))
        piece, features = handed.pieces.pop(j, None), handed.features.pop(j, None)
        piece = piece or (self.data if pairs is None else pairs[j])
        if features is None:
            if place is None and not task.own_features(params):
                features = features_of_kernel(piece.X, kernel)
            else:
                features = yield from _make_form_features(task, piece, kernel, params, (self.seed, j, 1))
            if pairs is not None and type(features) is KernelFeatures and features.rows is piece.X:
                pair = self._pair_kernel(pairs, j)
                features = features if pair is None else KernelFeatures(features.rows, features.kernel, pair)
            if handed.shared and isinstance(features, KernelFeatures):
                features.reuse(*((handed.memory, handed.fold) if pairs is None else ()))
        if handed.prepared.left > 1:
            handed.pieces[j], handed.features[j] = piece, features
        inner = kernel if place is None else Kernel("linear")
        given = piece, features, inner, self.bias, params, self.solve
        if foreign:
            form = yield from steps_with_error_notes(task, "objective", "problem", partial(task.problem, *given))
            check_form(task, form, piece)
        elif type(task).problem is Objective.problem:
            form = task.form(piece, features, self.bias, params)
        else:
            form = yield from task.problem(*given)
        form = as_joint_problem(form) if self.multiclass == "joint" else form
        if self.constraints is not None:
            form = self.constraints.of(form, self.data)
        if type(task).check_form is not Objective.check_form:
            call_with_error_notes(task, "objective", "check_form", form, params)
        if self.check is not None:
            self.check(form)
        return form

    def _pair_kernel(self, pieces: ClassPairProblems, j: int) -> ClassPairGram | None:
        """Return the kernel of a pair's rows with values that all pairs share; None where they share none."""
        shared = self.handed.classes
        if "blocks" not in shared:
            shared["blocks"] = self._class_blocks(pieces)
        blocks = shared["blocks"]
        return None if blocks is None else ClassPairGram(blocks, pieces.pairs.classes(j))

    def _class_blocks(self, pieces: ClassPairProblems) -> ClassGramMatrices | None:
        """Kernel values in blocks of two classes; None where pairs have rows of their own, or blocks are too large."""
        pairs, X = pieces.pairs, pieces.data.X
        if pairs.in_order or not self.kernel.plain or pieces.largest > SHARING_PAIR_ROWS:
            return None
        if 8.0 * (X.n_entries + float(np.square(pairs.sizes.astype(float)).sum())) > CLASS_BLOCK_BYTES:
            return None
        return ClassGramMatrices(self.kernel, X.take(pairs.by_class), pairs.sizes)

    def stack(self, first: Form) -> PairStack | None:
        """Return all pairs of classes in one, where they share kernel values; None where each is solved on its own.

        `first`: form of the first pair.
        """
        task, handed, features = self.task, self.handed, first.features
        if overrides_objective_base(task, "form", "problem", "row_terms", "check_column", "check_form"):
            return None
        alone = handed.starts is not None or handed.prepared.left > 1
        if alone or self.pairs is None or type(features) is not KernelFeatures or features.dtype != np.float64:
            return None
        pair, pairs, data = features.pair, self.pairs.pairs, self.data
        if type(pair) is not ClassPairGram or 8.0 * data.X.shape[0] ** 2 > CLASS_BLOCK_BYTES:
            return None
        totals = [total for _, total in self.pairs.sizes]
        terms = {total: declared_objective_terms(task, self.params, total) for total in set(totals)}
        if not all(map(can_stack_pair, terms.values())):
            return None
        blocks, counts = pair.blocks, data.counts[pairs.by_class]
        whole = KernelFeatures(blocks.rows, blocks.kernel, blocks)
        return PairStack(whole, pairs, counts, [terms[total] for total in totals], self.bias)

    def size(self, j: int) -> tuple[int, float]:
        """Number of rows of a pair of classes, and their weight."""
        assert self.pairs is not None
        return self.pairs.sizes[j]

    def at_zero(self, total: float) -> ZeroProof | None:
        """Return what is known of a pair of this weight at w = 0; None where the form or a start say more."""
        if self.handed.starts is not None or not total > 0:
            return None
        return call_with_error_notes(self.task, "objective", "at_zero", self.params, total)


def _make_form_features(
    task: Objective, data: Data, kernel: Kernel, params: dict[str, Any], seeds: tuple[int, ...]
) -> Generator[None, Any, Features]:
    """Make other features of a form than the kernel's own: the objective's, or those of an approximate kernel's map.

    Objectives take the latter for rows.
    """
    place, own = kernel.explicit, task.own_features(params)
    if place is None:
        work = partial(task.features, data, kernel, params, seeded_rng(*seeds))
        made = yield from steps_with_error_notes(task, "objective", "features", work)
        if class_is_foreign(type(task)):
            check_features(task, made, data)
        if isinstance(made, LinearFeatures) and made.rows is not data.X and not made.rows.made_when_asked:
            check_feature_map_size(made.rows.largest(), made.dtype)
        return made
    mapped = replace(data, X=(yield from place.rows(data.X)))
    features = features_of_kernel(mapped.X, Kernel("linear"))
    if own:
        work = partial(task.features, mapped, Kernel("linear"), params, seeded_rng(*seeds))
        features = yield from steps_with_error_notes(task, "objective", "features", work)
    if type(features) is not LinearFeatures:
        raise ValueError(f"objective {task.name!r} makes columns of its own of these rows; leave out approximation")
    if not features.rows.made_when_asked:
        check_feature_map_size(features.rows.largest(), features.dtype)
    return MappedFeatures(features.rows, features.ridge, place)
