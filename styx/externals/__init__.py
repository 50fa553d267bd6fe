"""Calls to functions with outside effects, logged before and after: a success counts once (paper section 7.5)."""
