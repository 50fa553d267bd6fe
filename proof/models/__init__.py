"""Executable models of the protocol: its rules in few lines, without anything that makes the engine fast or durable.

A model finds out whether a rule is right. Whether the engine follows the rule is what the simulator finds out.
"""
