"""An outside judge for a deployment: it sends random transactions, records their outcomes, and has adya, an independent
checker of isolation, search for an order that explains them.

    python -m proof.judge run                                an engine of its own, with crashes
    python -m proof.judge run --url http://127.0.0.1:8000    a deployment of `proof.judge.app:app`
    python -m proof.judge cluster                            a cluster of real processes, with faults
    python -m proof.judge pairs                              pairs that want one unique value
    python -m proof.judge check DIR                          histories recorded before

The judge sees only requests and replies, like any client. The method is that of A. Adya, *Weak Consistency* (1999), and
of K. Kingsbury and P. Alvaro, *Elle: Inferring Isolation Anomalies from Experimental Observations* (VLDB 2020).
"""
