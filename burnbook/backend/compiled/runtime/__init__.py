"""What kernels are made of: threads, memory, SIMD, loops, cache."""
