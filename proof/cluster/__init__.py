"""Clusters of real processes under test: starting them, breaking them, and auditing them."""

from __future__ import annotations

from proof.cluster.audit import Audit, AuditFailed, audit
from proof.cluster.child import ChildFailed, ChildProcess
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.load import LoadOptions, Planned, SteadyLoad, chaos_requests
from proof.cluster.services import LocalServices, Service, local_services

__all__ = [
    "Audit",
    "AuditFailed",
    "ChildFailed",
    "ChildProcess",
    "ClusterOptions",
    "ClusterUnderTest",
    "LoadOptions",
    "LocalServices",
    "Planned",
    "Service",
    "SteadyLoad",
    "audit",
    "chaos_requests",
    "local_services",
]
