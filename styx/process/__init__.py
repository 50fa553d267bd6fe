"""Facilities of a process: allocator, garbage collector, ports, durable files, interpreter."""
