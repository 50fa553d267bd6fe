"""Reference lines: the cost of the same work without the engine, measured in the same run, so that results can be
compared on any machine.
"""
