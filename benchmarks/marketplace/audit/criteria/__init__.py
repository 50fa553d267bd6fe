"""The criteria, a file each, named after what it is about. Each has `violations(run)`, which yields what breaks it."""
