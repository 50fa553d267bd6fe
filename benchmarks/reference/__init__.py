"""Reference lines: what the same work costs without the engine, measured in the same run, so that a result means
something on any machine. Nothing here runs the engine.
"""
