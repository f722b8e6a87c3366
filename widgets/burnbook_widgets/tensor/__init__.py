"""The view of a tensor of any rank."""
