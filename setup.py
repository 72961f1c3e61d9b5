"""Compiled parts of mdlearn. Everything else is declared in pyproject.toml.

``MDLEARN_SAFE=1`` in the environment builds the kernels with bounds checks, wraparound,
initialisation checks and Python's division, slower and for tests. ``MDLEARN_SANITIZE=address,undefined``
builds them with the sanitizers of gcc or clang, which also see what pointers reach; ``.ci/sanitize`` does
that and runs tests under them. ``MDLEARN_BUILD_JOBS=4`` sets how many processes translate and compile beside
each other; without it they are as many as the process may use cores.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
SAFE = os.environ.get("MDLEARN_SAFE", "0") not in ("", "0")
SANITIZE = os.environ.get("MDLEARN_SANITIZE", "")
FLAVOUR = "cython-safe" if SAFE else "cython"
# What Cython needs for typed memoryviews, once for all modules: most of what each would have to compile.
SHARED = "mdlearn._solvers._cyutility"

DIRECTIVES = {
    "language_level": 3,
    "embedsignature": True,
    "boundscheck": SAFE,
    "wraparound": SAFE,
    "initializedcheck": SAFE,
    "cdivision": not SAFE,
    # Nobody pickles what kernels hold (pickle refuses it in words), nor asks their functions for more than built-in
    # ones have: without, a tenth less is to be compiled.
    "auto_pickle": False,
    "binding": False,
}

# No -ffast-math: the certificates rely on IEEE arithmetic. No -march=native: wheels travel.
# -fno-math-errno only drops the writing of errno by sqrt and its like; their values stay the same.
# -g0: Python's own flags ask for debug information, a quarter of the compiler's time and half of the size.
UNIX_FLAGS = ["-O3", "-g0", "-fno-math-errno"]
LINK_ARGS = []
if SANITIZE:
    LINK_ARGS = [f"-fsanitize={SANITIZE}"]
    UNIX_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", *LINK_ARGS]
COMPILE_ARGS = {"unix": UNIX_FLAGS, "mingw32": UNIX_FLAGS, "cygwin": UNIX_FLAGS, "msvc": ["/O2"]}


def extensions():
    """One extension for each .pyx, and one for what they share; any change of a .pxd rebuilds them all."""
    folder = ROOT / "mdlearn" / "_solvers"
    pyx = sorted(path.relative_to(ROOT).as_posix() for path in folder.glob("*.pyx"))
    pxd = sorted(path.relative_to(ROOT).as_posix() for path in folder.glob("*.pxd"))
    kernels = [Extension(f"mdlearn._solvers.{Path(path).stem}", [path], depends=pxd) for path in pyx]
    return [Extension(SHARED, [SHARED.replace(".", "/") + ".c"]), *kernels]


def jobs():
    """Number of processes that may work beside each other."""
    asked = os.environ.get("MDLEARN_BUILD_JOBS", "")
    if asked:
        if not asked.isdecimal() or int(asked) == 0:
            raise SystemExit(f"MDLEARN_BUILD_JOBS={asked!r} needs to be a whole number of 1 or more")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class BuildExt(build_ext):
    """Translate at build time only (an sdist needs no C), and build anew when the settings differ."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or jobs()

    def run(self):
        super().run()
        # `python -m mdlearn` in the root of a clone finds the source folder before the installed
        # package, so the modules are put there as well; git ignores them and wheels do not see them.
        self.copy_extensions_to_source()

    def build_extensions(self):
        args = COMPILE_ARGS.get(self.compiler.compiler_type, [])
        # The time stamps cannot tell a safe module from a fast one, so the settings that made
        # the present modules are kept on file. (In-place builds pass through build_lib too.)
        stamp = Path("build") / f"settings-{Path(self.build_lib).name}.txt"
        settings = f"{sorted(DIRECTIVES.items())} {args} {SHARED}\n"
        if not stamp.is_file() or stamp.read_text() != settings:
            self.force = True
        stamp.unlink(missing_ok=True)  # a build that fails half-way counts for nothing
        translated = cythonize(
            self.extensions,
            build_dir=str(Path("build") / FLAVOUR),
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            nthreads=self.parallel,
            force=self.force,
        )
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
            extension.extra_compile_args, extension.extra_link_args = args, LINK_ARGS
        super().build_extensions()
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(settings)


if __name__ == "__main__":  # the processes that translate may load this file, too
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExt})
