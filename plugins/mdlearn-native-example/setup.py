"""The compiled part; everything else is declared in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

loss = Extension("mdlearn_native_example._loss", ["src/mdlearn_native_example/_loss.pyx"])
setup(ext_modules=cythonize([loss], build_dir="build", compiler_directives={"language_level": 3}))
