"""The deterministic simulator: coordinator, workers, log, store and clients on virtual time, everything from one seed.

The same protocol cores as in production, hosted on fakes that delay, reorder, fail and crash as the seed says. A
failure is reproduced by its seed alone. See `simulate`.
"""

from proof.simulation.plan import FAULT_KINDS, SimulationPlan, random_plan
from proof.simulation.run import SimulationFailure, SimulationReport, replay_elsewhere, simulate

__all__ = [
    "FAULT_KINDS",
    "SimulationFailure",
    "SimulationPlan",
    "SimulationReport",
    "random_plan",
    "replay_elsewhere",
    "simulate",
]
