"""Dual Hessians of kernel problems with a variance term: dense blocks of few rows, exact margins of all.

May import forms, data and numerics. Working sets and coordinate descent call it.
"""
