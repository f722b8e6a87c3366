"""ONNX Runtime for a model that a test has written."""


def session(model, plain=False):
    """A session of ONNX Runtime; plain: without its optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if plain:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options)
