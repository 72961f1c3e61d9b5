"""Models as ONNX graphs: labels, decision values and probabilities in float64.

May import the model and, when asked, onnx. `Model.to_onnx` and `mdlearn.sklearn_onnx` call it.
"""
