"""Requests through Kafka, for clients and gateways: sends request records, and gives each reply to who waits for it.

It never runs a function and shares nothing with other requesters but the topics.
"""
