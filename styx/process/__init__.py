"""What a process has from its machine: allocator, collector, ports, durable files, interpreter, patience."""
