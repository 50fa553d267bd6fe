"""A deployment as separate processes: shells that connect the protocol cores to sockets, Kafka and the object store.

Coordinator, workers and gateways find each other through the coordinator's address and the cluster's secret.
"""
