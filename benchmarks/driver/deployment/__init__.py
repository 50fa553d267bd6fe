"""What a workload can be run on: an embedded engine, a cluster of its own, or a deployment that is there already."""
