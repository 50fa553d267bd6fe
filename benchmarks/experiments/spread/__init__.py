"""One load spread evenly over several independent clusters, as if they were one deployment.

Each has topics, state and accounts of its own, and knows nothing of the others; a client process has a client of each.
"""
