"""The driver of all workloads: open-loop load from several processes, and its measurement."""
