"""Requests that an operator has set aside, because the engine failed at them."""
