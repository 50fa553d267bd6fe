"""The log of a cluster: topics of one app in Kafka, written by fenced appenders, read at recovery, and fed to workers.

It uses aiokafka's client and wire formats. Payloads are opaque.
"""
