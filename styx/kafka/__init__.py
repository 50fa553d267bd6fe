"""Kafka as the log of a cluster and its clients speak it: topics of one app, a producer, a tail, fences, a reader.

Spoken through aiokafka's client and wire formats. Never interprets a payload.
"""
