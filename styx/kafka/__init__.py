"""The log of a cluster: topics of one app in Kafka, written by fenced appenders, read at recovery, and fed to workers.

Spoken through aiokafka's client and wire formats. Never interprets a payload.
"""
