"""The experiments of the paper's evaluation (§8), and the project's own targets. Each is one command."""
