"""The worker: hosts slots, executes functions, validates, commits. A pure protocol core; its shells do the I/O."""
