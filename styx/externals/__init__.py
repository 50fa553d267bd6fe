"""Calls to functions with outside effects: logged before and after, so that a success counts once (paper section 7.5).
"""
