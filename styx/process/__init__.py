"""Facilities of a process: memory, ports, durable files, the runtime, optional packages."""
