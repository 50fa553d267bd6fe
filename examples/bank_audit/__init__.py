"""An audit of a running bank: `python -m examples.bank_audit --url http://HOST:PORT`.

It opens new accounts in a deployment of `examples.bank:app`, and transfers money between them, under any disturbance.
Then it proves from the replies alone that nothing was lost, doubled or out of order.
"""
