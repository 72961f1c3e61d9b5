"""Model files: an .npz archive with a JSON header, written atomically, checked field by field when it is read.

May import the model and the data it is made of. `Model.save` and `mdlearn.load` call it; it executes nothing.
"""
