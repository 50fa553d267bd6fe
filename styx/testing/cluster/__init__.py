"""Clusters of real processes under test: started, broken in every way, and audited."""

from __future__ import annotations

from styx.testing.cluster.audit import Audit, AuditFailed, audit
from styx.testing.cluster.child import ChildFailed, ChildProcess
from styx.testing.cluster.cluster import ClusterOptions, ClusterUnderTest
from styx.testing.cluster.load import LoadOptions, Planned, SteadyLoad, chaos_requests
from styx.testing.cluster.services import LocalServices, Service, local_services

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
