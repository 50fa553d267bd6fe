"""The audit of a run of the marketplace: a criterion is a function over what was read, which yields what breaks it."""
