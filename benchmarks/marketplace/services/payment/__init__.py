"""The service of payments: it charges customers through a payment provider, and tells everybody how that ended."""
