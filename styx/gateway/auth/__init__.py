"""Who may do what at a gateway: API keys, tokens, rules, limits, and a line about each refusal.

`guard.py` puts them together before the gateway. Nothing here knows an engine or runs a request.
"""
