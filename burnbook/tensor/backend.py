"""What Burn's `tensor::backend` names: backends, and those that differentiate.

Rust tells the two apart by traits; here `Autodiff` decorates any backend, and whoever
needs gradients asks for `backend.ad_enabled`.
"""

from burnbook.backend import Autodiff as AutodiffBackend, Backend, Device

__all__ = ["AutodiffBackend", "Backend", "Device"]
