"""An outside judge for a deployment: random transactions are sent to it, what they did is written down, and adya, an
independent checker of isolation, looks for an order that explains it.

    python -m proof.judge run                                 an engine of its own, with crashes
    python -m proof.judge run --url http://127.0.0.1:8000     a deployment of `proof.judge.app:app`
    python -m proof.judge cluster                             a cluster of real processes, with faults
    python -m proof.judge check DIR                           histories recorded before

It sees requests and replies only, as any client does. The method is that of A. Adya, *Weak Consistency* (1999), and of
K. Kingsbury and P. Alvaro, *Elle: Inferring Isolation Anomalies from Experimental Observations* (VLDB 2020).
"""
