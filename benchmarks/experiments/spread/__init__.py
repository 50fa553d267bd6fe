"""One load spread evenly over several independent clusters, as if they were one deployment.

Each has separate topics, state and accounts. A client process has a client for each cluster.
"""
