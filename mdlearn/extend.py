"""Names with which plugins extend mdlearn, in one place; what is not here or public elsewhere may move without notice.

`API` is the number of this contract: within one number names are added, none is taken away and none changes its
meaning. What is to go from it works for two minor releases more, with a warning, before the number changes. A plugin
that needs a number says so: ``requires_api = 1`` beside its hooks. It also uses `mdlearn` itself (`Objective`,
`Solver`, `RowBlocks`, `hookimpl`, ...) and `mdlearn.testing`.
"""

from __future__ import annotations

from mdlearn.commands.options import add_force, positive_integer, seed
from mdlearn.data.clustering.distances import assign, squared_distances
from mdlearn.data.features.clustered_rows import BlockRows, Layout
from mdlearn.data.features.feature_map import FeatureMap, MappedFeatures, array_of
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.landmarks import choose, in_time
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.row_blocks.census import Census
from mdlearn.data.row_blocks.source import Portion, Tree, paired, plus
from mdlearn.data.row_values import row_values
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows, Rows, steps
from mdlearn.data.validation import Data, check_data, check_number
from mdlearn.experiments.data_set_files import matrix_in
from mdlearn.experiments.processes import worker_pool
from mdlearn.files.reading import ReadingOptions, read_for_fit
from mdlearn.files.tables import PACKED_ENDINGS
from mdlearn.forms.certificates.representer import representer
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.certificates.separability import RELATIVE_MARGIN, margin_bound
from mdlearn.forms.composite import Composite
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.joint.composite_point import CompositeEvaluation, CompositePoint
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.forms.native import NativeFunction
from mdlearn.forms.penalised.coefficient_terms import LimitTerm, NormTerm, first_differences
from mdlearn.forms.problem import ColumnProblem, Problem, Several
from mdlearn.forms.proof import Solution, judge, judge_residual
from mdlearn.forms.row_terms import RowTerms
from mdlearn.inner_problems import solve_inner
from mdlearn.model.label_tasks import MULTI_LABEL, SEMI_SUPERVISED, MultiLabelModel, SemiSupervisedModel
from mdlearn.model.model import Model
from mdlearn.model.task import Task
from mdlearn.numerics import memory
from mdlearn.numerics.blas_threads import blas_threads
from mdlearn.objectives.base import Objective, Parameter, Setting, Terms
from mdlearn.output_files import OutputFile, check_folder, replace_file
from mdlearn.plotting.style import MARKERS, add_legend, curve_style
from mdlearn.plugins.command import Command, UsageError
from mdlearn.plugins.hookspecs import API, hookimpl
from mdlearn.selection.metrics import accuracy, auc, average_ranks, f1_macro, f1_micro
from mdlearn.selection.progress_bar import ProgressBar
from mdlearn.solvers.base import Claim, Report, Solver
from mdlearn.solvers.common.primal_dual import report_of

__all__ = [
    "API",
    "BLOCK_ENTRIES",
    "MARKERS",
    "MULTI_LABEL",
    "PACKED_ENDINGS",
    "RELATIVE_MARGIN",
    "SEMI_SUPERVISED",
    "BlockRows",
    "Census",
    "Claim",
    "Column",
    "ColumnProblem",
    "Command",
    "Composite",
    "CompositeEvaluation",
    "CompositePoint",
    "CsrRows",
    "Data",
    "DenseRows",
    "FeatureMap",
    "GivenLoss",
    "HingeTerm",
    "Kernel",
    "Layout",
    "LimitTerm",
    "LinearFeatures",
    "LogisticTerm",
    "MappedFeatures",
    "MarginForm",
    "Model",
    "MultiLabelModel",
    "NativeFunction",
    "NormTerm",
    "Objective",
    "OutputFile",
    "Parameter",
    "Point",
    "Portion",
    "Problem",
    "ProgressBar",
    "ReadingOptions",
    "Report",
    "RowTerms",
    "Rows",
    "SemiSupervisedModel",
    "Setting",
    "Several",
    "Solution",
    "Solver",
    "Task",
    "Terms",
    "Tree",
    "UsageError",
    "accuracy",
    "add_force",
    "add_legend",
    "array_of",
    "assign",
    "auc",
    "average_ranks",
    "blas_threads",
    "check_data",
    "check_folder",
    "check_number",
    "check_rows",
    "choose",
    "curve_style",
    "distinct",
    "f1_macro",
    "f1_micro",
    "first_differences",
    "hookimpl",
    "in_time",
    "judge",
    "judge_residual",
    "margin_bound",
    "matrix_in",
    "memory",
    "paired",
    "plus",
    "positive_integer",
    "read_for_fit",
    "replace_file",
    "report_of",
    "representer",
    "row_values",
    "seed",
    "solve_inner",
    "squared_distances",
    "steps",
    "to_type",
    "worker_pool",
]
