"""Plugins for tests: their code, and a folder on the path where distributions lie as pip would put them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent

import mdlearn
import mdlearn.extend
from mdlearn.plugins import discovery, registry
from mdlearn.plugins.discovery import DISABLE

GOOD = """
    import mdlearn
    from mdlearn.objectives.base import Parameter, Terms
    from mdlearn.forms.losses import HingeTerm
    from mdlearn.solvers.interior_point.solver import Interior


    class Mean(mdlearn.Objective):
        name = "mean_hinge"
        summary = "SVM with the averaged hinge loss"
        formula = "1/2 |w|^2 + c mean max(0, 1 - z)"
        parameters = {"c": Parameter(10.0, "weight of the averaged loss")}

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(params["c"] / total),))


    class Renamed(Interior):
        name = "renamed"
        purpose = "the interior point under another name"


    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [Mean]


    @mdlearn.hookimpl
    def mdlearn_solvers():
        return [Renamed]
"""


def returning(answer, before=""):
    """A plugin whose hook for objectives returns an expression; `before` is code in front of the hook."""
    lines = ["import mdlearn", "from mdlearn.objectives.svm import SVM", *dedent(before).splitlines()]
    return "\n".join([*lines, "@mdlearn.hookimpl", "def mdlearn_objectives():", f"    return {answer}"])


def offering(*names):
    """A plugin with an objective, another SVM, for every name."""
    classes = ", ".join(f"type('Another', (SVM,), {{'name': {name!r}}})" for name in names)
    return returning(f"[{classes}]")


HOOKS = "mdlearn_objectives, mdlearn_solvers, mdlearn_kernels, mdlearn_sources, mdlearn_commands"
BARE = "def mdlearn_objectives():\n    return []\n"
SOLVER = """
    import mdlearn
    from mdlearn.solvers.interior_point.solver import Interior

    class Bad(Interior):
        {line}

    @mdlearn.hookimpl
    def mdlearn_solvers():
        return [Bad]
"""
WRONG = "it needs to return a list of subclasses of mdlearn.Objective"

# What a plugin does -> its code, and all that is told of it.
FAULTS = {
    "import error": ("import no_such_module", "import failed: ModuleNotFoundError: No module named 'no_such_module'"),
    "newer import": (
        "from mdlearn.extend import no_such_name",
        "import failed: ImportError: cannot import name 'no_such_name' from 'mdlearn.extend' "
        f"({mdlearn.extend.__file__}); this mdlearn has API 1: install the versions that belong together",
    ),
    "newer API": (
        "requires_api = 2\n" + returning("[]"),
        "it needs API 2 of mdlearn.extend, this mdlearn has 1; install a newer mdlearn",
    ),
    "older API": (
        "requires_api = 0\n" + returning("[]"),
        "it was written for API 0 of mdlearn.extend, the oldest is 1; install a newer version of it",
    ),
    "no number": (
        "requires_api = '1.0'\n" + returning("[]"),
        "requires_api is '1.0'; a whole number is needed",
    ),
    "failing module": ("1 / 0", "import failed: ZeroDivisionError: division by zero"),
    "exit": ("import sys; sys.exit('no licence')", "import failed: SystemExit: no licence"),
    "syntax error": ("def broken(:", "import failed: SyntaxError: invalid syntax (bad_plugin.py, line 1)"),
    "asks too early": (
        "import mdlearn; mdlearn.list_objectives()",
        "import failed: RuntimeError: plugins are being loaded; a plugin cannot fit or ask for objectives and solvers "
        "while it is imported or its hooks are called",
    ),
    "no message": (
        "class Mute(Exception):\n    def __str__(self):\n        raise Exception\nraise Mute",
        "import failed: Mute",
    ),
    "misspelt hook": (
        returning("[]").replace("mdlearn_objectives", "mdlearn_objective"),
        f"hook 'mdlearn_objective' does not exist; known hooks: {HOOKS}",
    ),
    "no decorator": (BARE, "mdlearn_objectives lacks the decorator @mdlearn.hookimpl"),
    "no hook": (
        "",
        f"it implements no hook (known: {HOOKS}); the entry point needs to name their module",
    ),
    "wrapper": (
        returning("[]").replace("hookimpl", "hookimpl(hookwrapper=True)").replace("return", "yield"),
        "hook mdlearn_objectives is a wrapper; return your own classes instead",
    ),
    "raising hook": (
        returning("no_such_name"),
        "hook mdlearn_objectives failed: NameError: name 'no_such_name' is not defined",
    ),
    "raising late": (
        returning("(1 / n for n in [0])"),
        "hook mdlearn_objectives failed: ZeroDivisionError: division by zero",
    ),
    "exit in a hook": (
        returning("exit('bye')", "from sys import exit"),
        "hook mdlearn_objectives failed: SystemExit: bye",
    ),
    "returns None": (returning("None"), f"hook mdlearn_objectives returned None; {WRONG}"),
    "returns a text": (returning("'svm'"), f"hook mdlearn_objectives returned 'svm'; {WRONG}"),
    "returns a class": (returning("int"), f"hook mdlearn_objectives returned <class 'int'>; {WRONG}"),
    "a number": (returning("[3]"), "hook mdlearn_objectives returned 3, which is no subclass of mdlearn.Objective"),
    "another class": (
        returning("[int]"),
        "hook mdlearn_objectives returned <class 'int'>, which is no subclass of mdlearn.Objective",
    ),
    "evil": (
        returning("[Evil()]", "class Evil:\n    def __repr__(self):\n        raise SystemExit('never')"),
        "what it returns cannot be examined: SystemExit: never",
    ),
    "no name": (
        returning("[type('Nameless', (mdlearn.Objective,), {})]"),
        "objective class Nameless has no name",
    ),
    "invalid name": (
        offering("My LDM"),
        "objective class Another is named 'My LDM'; a name needs lower-case letters, digits, '_' and '-', a letter "
        "first",
    ),
    "a name of fit": (
        returning("[Clash]", "class Clash(SVM):\n    name = 'clash'\n    parameters = {'tol': SVM.parameters['C']}"),
        "objective class Clash cannot be made without arguments (TypeError: objective 'clash' declares ['tol'], which "
        "are names of fit's own arguments)",
    ),
    "parameters": (
        returning("[Odd]", "class Odd(SVM):\n    name = 'odd'\n    parameters = {'C': 1.0}"),
        "objective class Odd needs parameters that map names to Parameter or Setting",
    ),
    "summary": (
        returning("[Odd]", "class Odd(SVM):\n    name = 'odd'\n    summary = None"),
        "objective class Odd needs a text as summary",
    ),
    "solver auto": (
        SOLVER.format(line="name = 'auto'"),
        "solver class Bad is named 'auto', which stands for the choice among all solvers",
    ),
    "solver options": (
        SOLVER.format(line="name, options = 'bad', None"),
        "solver class Bad needs options that map names to defaults",
    ),
    "solver purpose": (
        SOLVER.format(line="name, purpose = 'bad', 3"),
        "solver class Bad needs a text as purpose",
    ),
    "built-in name": (
        offering("ldm"),
        "the objective name 'ldm' is built in; upgrade the plugin, or give yours another name",
    ),
    "twice": (
        returning("[type('A', (SVM,), {'name': 'twin'}), type('B', (SVM,), {'name': 'twin'})]"),
        "it offers several objectives with the name 'twin'",
    ),
}


def can_build():
    """Whether pip can build a wheel without an index."""
    if any(importlib.util.find_spec(name) is None for name in ("pip", "setuptools")):
        return False
    major, minor = (int(part) for part in importlib.metadata.version("setuptools").split(".")[:2])
    # Older ones need the package wheel for it.
    return (major, minor) >= (70, 1) or importlib.util.find_spec("wheel") is not None


def can_compile():
    """Whether Cython and a C compiler are here."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return importlib.util.find_spec("Cython") is not None and shutil.which(compiler) is not None


def install(package, target):
    """Build a package and put it into a folder, without dependencies and without an index."""
    options = (
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
    )
    done = run("-m", "pip", "install", *options, "--target", target, package, folder=package, path=[])
    assert done.returncode == 0, done.stderr


def run_tests(package, target, *options, core=Path(mdlearn.__file__).parents[1]):
    """Run the tests of a package against what is installed, with a core; warnings are errors."""
    # -B: what was compiled in the same second would stand for a module of the same length that is written after it.
    command = ("-B", "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *options)
    return run(*command, folder=package, path=[target, core])


def run(*command, folder, path):
    """Python in another process, with its own path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "OMP_NUM_THREADS": "1"}
    environment.pop(DISABLE, None)
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


class Site:
    """A folder on the path; mdlearn looks for plugins anew as soon as it is asked."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        monkeypatch.delenv(DISABLE, raising=False)
        monkeypatch.syspath_prepend(folder)
        distributions = discovery._plugin_distributions
        # What is installed where the tests run is no part of them.
        here = lambda found: Path(found.locate_file("")).is_relative_to(folder.parent)  # noqa: E731
        monkeypatch.setattr(discovery, "_plugin_distributions", lambda: filter(here, distributions()))
        self.forget()

    def forget(self):
        """Drop the registry; the one of before comes back after the test."""
        self.monkeypatch.setattr(registry, "_once", registry._ProcessRegistry())

    def add(self, name, code, version="1.0", entries=None):
        """Install a distribution with one module; the default entry point is "main"."""
        module = re.sub("[-.]", "_", name).lower()
        (self.folder / f"{module}.py").write_text(dedent(code))
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        entries = {"main": module} if entries is None else entries
        lines = [f"{key} = {value}" for key, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[mdlearn]", *lines, ""]))
        # Names of modules are used again by other tests.
        self.monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.invalidate_caches()
        self.forget()
        return info
