"""Hosts of the protocol cores: each carries out a core's effects over ports, the same wherever the core runs."""
