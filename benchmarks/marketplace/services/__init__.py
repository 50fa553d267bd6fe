"""The services of the marketplace, a folder each: `rows` declares what a service keeps, its other modules what it does.

A service reads and writes its own rows alone. It reaches another one by calling its functions, by name, or by events.
"""
