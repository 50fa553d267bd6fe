"""Authentication and authorization at a gateway: API keys, tokens, rules, limits, and a line about each refusal.

`guard.py` puts them together in front of the gateway.
"""
