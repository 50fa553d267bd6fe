"""Requests that an operator has set aside, since the engine failed at them."""
