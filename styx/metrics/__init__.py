"""Metrics: histograms as plain numbers, and their text format."""
