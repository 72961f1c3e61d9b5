"""Sphinx settings. Build with `.ci/docs`, or: sphinx-build -W --keep-going -n docs docs/_build/html."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

import mdlearn

project = "mdlearn"
author = "mdlearn developers"
copyright = "mdlearn developers, BSD-3-Clause"
version = release = mdlearn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "gallery/*.rst"]
nitpicky = True
nitpick_ignore_regex = [("py:obj", r"\w+_")]  # attributes of estimators, which their class documents
default_role = "literal"
suppress_warnings = ["config.cache"]  # the gallery's sort key is a class

# Signatures without types: numpydoc's sections tell them, with shapes and units.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = f"mdlearn {release}"
html_static_path = ["_static"]
html_css_files = ["mdlearn.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
    "logo": {"text": "mdlearn"},
}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 2,
    "plot_gallery": "True",
    "ignore_repr_types": r"matplotlib\.(axes|legend)",  # their text is an address in memory
}

BARS = re.compile(r"(``.*?``|:\w+:`.*?`)|(?<!\\)\|")
INITIAL = re.compile(r"^(\s*)([A-Z]\. )")
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]+\)")


def with_bars(app, what, name, obj, options, lines):
    """Escape what plain docstrings may write: |w|, no substitution, and initials of authors, which count nothing."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = INITIAL.sub(r"\1\\\2", line)
            lines[i] = BARS.sub(lambda found: found.group(1) or r"\|", line)


def without_outside(app, docname, source):
    """Links of the Markdown pages to files outside this folder become plain text."""
    source[0] = OUTSIDE.sub(r"\1", source[0])


def math(self, node):
    """Formulas as MathML: browsers show it without a script from elsewhere, and what is no formula ends the build."""
    block = isinstance(node, nodes.math_block)
    try:
        self.body.append(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (math, None), (math, None))
    # After numpydoc, which rewrites sections at priority 500.
    app.connect("autodoc-process-docstring", with_bars, priority=600)
    app.connect("source-read", without_outside)
