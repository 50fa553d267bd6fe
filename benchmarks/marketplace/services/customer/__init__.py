"""The service of customers: who they are, and what they have done."""
