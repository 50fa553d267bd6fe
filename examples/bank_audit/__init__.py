"""An audit of a running bank: `python -m examples.bank_audit --url http://HOST:PORT`.

It opens accounts of its own in a deployment of `examples.bank:app`, transfers money between them while whatever else
happens there happens, and proves from the replies alone that nothing was lost, doubled or out of order.
"""
