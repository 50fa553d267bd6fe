"""Torn reads of two operators: how often two reads see two moments, where one read never does."""
