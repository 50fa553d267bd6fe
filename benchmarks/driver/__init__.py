"""The driver that every workload runs under: open-loop load from several processes, and what it measured."""
