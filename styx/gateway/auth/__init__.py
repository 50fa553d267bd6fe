"""Authentication and authorization at a gateway: API keys, tokens, rules, limits, and a log of refusals.

`guard.py` combines them in front of the gateway.
"""
