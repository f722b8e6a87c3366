"""What tests beside PyTorch share. Nothing here imports it, so nothing here skips."""

import numpy as np


def close(ours, theirs, rtol=1e-9):
    """Our tensor equals PyTorch's, as far as its largest element allows."""
    wanted = theirs.detach().numpy()
    scale = np.abs(wanted).max() + 1e-30
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=rtol, atol=rtol * scale)
