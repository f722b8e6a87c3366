"""ai.onnx.ml: what comes before and after networks, and trees."""
