"""Kafka as the log of a cluster and of its clients, through aiokafka's client: topics, producer, tail, fences, reader.

Payloads are opaque.
"""
