"""Transactions as large as the documented limits allow, many of them at once, on a real engine or cluster: each must be
answered, small requests must go on meanwhile, and memory must come back.
"""
