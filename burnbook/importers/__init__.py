"""Models that others wrote: PyTorch, safetensors and ONNX files."""
