"""Measuring: histograms as plain numbers, and how a process shows what it has counted."""
