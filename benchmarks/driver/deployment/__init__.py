"""The deployments that a workload can run on: an embedded engine, a new cluster, or an existing deployment."""
