"""ai.onnx.preview.training: steps of optimizers."""
