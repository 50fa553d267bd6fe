"""Requests and replies through Kafka: the Kafka client, and the requester that it and a cluster's gateways share."""
