"""What a careful operator asks of manifests before they reach a cluster. Each policy gives what is wrong, in words.

Pure functions of rendered manifests; Kubernetes' own schemas are `object_schemas`' matter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tests.kubernetes.charts import Manifest
from tests.kubernetes.workloads import (
    SERVERS,
    Workload,
    of_kind,
    references,
    secret_values,
    selects,
    strings,
    workloads,
)

Policy = Callable[[Sequence[Manifest]], Iterator[str]]

NAME_LENGTH_MAX: Final = 63
STATEFUL_NAME_LENGTH_MAX: Final = 52
"""A StatefulSet's name gets a number and, in a label of its pods, a hash of ten characters."""
PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
LABELS: Final = tuple(
    f"app.kubernetes.io/{each}" for each in ("name", "instance", "component", "version", "managed-by", "part-of")
)
SECRET_LENGTH_MIN: Final = 16
"""Of a generated secret; shorter values of Secrets, such as a user's name, may stand elsewhere too."""

_SECRET_NAME: Final = re.compile(r"SECRET|PASSWORD|PASSWD|TOKEN|ACCESS_KEY|PRIVATE", re.IGNORECASE)
_FILE_NAME: Final = re.compile(r"_(FILE|PATH|DIR)$")
_PLACEHOLDER: Final = re.compile(r"change.?me|minioadmin|password123|^admin$", re.IGNORECASE)


def pods_have_no_rights(manifests: Sequence[Manifest]) -> Iterator[str]:
    """No root, no host, no token, and an account of their own."""
    for workload in workloads(manifests):
        where, pod = workload.where, workload.pod
        context = pod.get("securityContext", {})
        if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
            yield f"{where}: its pods may run as root"
        if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{where}: no seccomp profile"
        if pod.get("automountServiceAccountToken") is not False:
            yield f"{where}: its pods get a token of the API server"
        if pod.get("serviceAccountName", "default") == "default":
            yield f"{where}: it runs under the namespace's default account"
        yield from (f"{where}: {each} is set" for each in ("hostNetwork", "hostPID", "hostIPC") if pod.get(each))
        for volume in pod.get("volumes", []):
            if "hostPath" in volume:
                yield f"{where}: volume {volume['name']} is the node's"
            if "emptyDir" in volume and not volume["emptyDir"].get("sizeLimit"):
                yield f"{where}: volume {volume['name']} can fill the node's disk"


def containers_are_confined(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Nothing to write to, nothing to gain, and limits."""
    for workload in workloads(manifests):
        for where, container in workload.containers():
            context = container.get("securityContext", {})
            if context.get("readOnlyRootFilesystem") is not True:
                yield f"{where}: it can write to its root file system"
            if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
                yield f"{where}: it can gain rights"
            if context.get("capabilities", {}).get("drop") != ["ALL"] or context["capabilities"].get("add"):
                yield f"{where}: it has capabilities"
            if context.get("runAsUser") == 0 or context.get("runAsNonRoot") is False:
                yield f"{where}: it runs as root"
            resources = container.get("resources", {})
            for part, what in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
                if not resources.get(part, {}).get(what):
                    yield f"{where}: no {what} in its {part}"
            if re.search(r":latest$|^[^:@]+$", container["image"].rpartition("/")[2]):
                yield f"{where}: the image {container['image']} has no version"


def servers_are_probed(manifests: Sequence[Manifest]) -> Iterator[str]:
    """A start, readiness and life are each asked for, at ports that are there; and the end has its time."""
    for workload in workloads(manifests):
        if workload.kind not in SERVERS:
            continue
        for container in workload.pod["containers"]:
            where = f"{workload.where}, container {container['name']}"
            ports = {port.get("name") for port in container.get("ports", [])}
            for probe in PROBES:
                found = container.get(probe)
                if found is None:
                    yield f"{where}: no {probe}"
                    continue
                for action in ("httpGet", "tcpSocket", "grpc"):
                    port = found.get(action, {}).get("port")
                    if isinstance(port, str) and port not in ports:
                        yield f"{where}: {probe} asks at port {port!r}, which it has not"
            live, ready = container.get("livenessProbe"), container.get("readinessProbe")
            if live is not None and live == ready:
                yield f"{where}: what is not ready is killed"
        if "terminationGracePeriodSeconds" not in workload.pod:
            yield f"{workload.where}: nothing says how long its end may take"


def no_secret_is_plain(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Secrets stand in Secrets alone, and none is known beforehand."""
    for workload in workloads(manifests):
        for where, container in workload.containers():
            for variable in container.get("env", []):
                name = variable["name"]
                secret = _SECRET_NAME.search(name) and not _FILE_NAME.search(name)
                if secret and (variable.get("value") or "secretKeyRef" not in variable.get("valueFrom", {})):
                    yield f"{where}: {name} is not taken from a Secret"
    values = secret_values(manifests)
    for value in values:
        if _PLACEHOLDER.search(value):
            yield f"a Secret holds {value!r}, which everybody knows"
    long = {value for value in values if len(value) >= SECRET_LENGTH_MIN}
    for manifest in manifests:
        if manifest["kind"] == "Secret":
            continue
        texts = "\n".join(strings(manifest))
        if any(value in texts for value in long):
            yield f"{manifest['kind']}/{manifest['metadata']['name']}: it shows what a Secret holds"


def what_is_named_is_there(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Accounts, ConfigMaps and Secrets that pods name, the ports of Services, and what selectors are to find.

    What the user is to make beforehand is told too: a manifest does not show it.
    """
    names = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in manifests}
    pods = workloads(manifests)
    for workload in pods:
        account = workload.pod.get("serviceAccountName")
        if account and ("ServiceAccount", account) not in names:
            yield f"{workload.where}: there is no account {account}"
        for kind, name, key in references(workload):
            found = names.get((kind, name))
            if found is None:
                yield f"{workload.where}: there is no {kind} {name}"
            elif key is not None and key not in {*found.get("data", {}), *found.get("stringData", {})}:
                yield f"{workload.where}: {kind} {name} has no {key}"
        yield from _mounts(workload)
    for service in of_kind(manifests, "Service"):
        where = f"Service/{service['metadata']['name']}"
        behind = [each for each in pods if selects(service["spec"].get("selector"), each.labels)]
        if len(behind) != 1:
            yield f"{where}: there are pods of {len(behind)} workloads behind it"
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            for workload in behind:
                if target not in _ports(workload):
                    yield f"{where}: its port {target!r} is none of {workload.where}"


def _mounts(workload: Workload) -> Iterator[str]:
    volumes = {volume["name"] for volume in workload.pod.get("volumes", [])}
    claimed = {claim["metadata"]["name"] for claim in workload.manifest["spec"].get("volumeClaimTemplates", [])}
    mounted: set[str] = set()
    for where, container in workload.containers():
        for mount in container.get("volumeMounts", []):
            mounted.add(mount["name"])
            if mount["name"] not in volumes | claimed:
                yield f"{where}: there is no volume {mount['name']}"
    yield from (f"{workload.where}: nobody mounts {each}" for each in sorted((volumes | claimed) - mounted))


def _ports(workload: Workload) -> set[Any]:
    ports = [port for _, container in workload.containers() for port in container.get("ports", [])]
    return {port.get("name") for port in ports} | {port["containerPort"] for port in ports}


def workloads_belong_together(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Selectors take their own pods and nobody else's; a StatefulSet has its Service."""
    pods = workloads(manifests)
    for workload in pods:
        if workload.kind not in SERVERS:
            continue
        selector = workload.manifest["spec"]["selector"]
        if not selects(selector, workload.labels):
            yield f"{workload.where}: its selector does not take its own pods"
        for other in pods:
            if other.where != workload.where and selects(selector, other.labels):
                yield f"{workload.where}: its selector takes pods of {other.where}"
        if workload.kind == "StatefulSet":
            service = workload.manifest["spec"].get("serviceName")
            heads = [each for each in of_kind(manifests, "Service") if each["metadata"]["name"] == service]
            if not heads or (workload.replicas > 1 and heads[0]["spec"].get("clusterIP") != "None"):
                yield f"{workload.where}: it has no headless Service"


def disruptions_are_bounded(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Several pods are not evicted at once, are not on one node, and one can always be evicted."""
    budgets = of_kind(manifests, "PodDisruptionBudget")
    for workload in workloads(manifests):
        if workload.kind not in SERVERS or workload.replicas < 2:
            continue
        mine = [each for each in budgets if selects(each["spec"]["selector"], workload.labels)]
        if len(mine) != 1:
            yield f"{workload.where}: {len(mine)} disruption budgets"
        for budget in mine:
            spec = budget["spec"]
            if spec.get("maxUnavailable") in (0, "0%") or spec.get("minAvailable") in (workload.replicas, "100%"):
                yield f"{workload.where}: its nodes can never be drained"
        if not workload.pod.get("topologySpreadConstraints") and not workload.pod.get("affinity"):
            yield f"{workload.where}: all of its pods may come to one node"


def the_network_is_closed(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Each server's pods are under a policy of what may come in."""
    policies = of_kind(manifests, "NetworkPolicy")
    for workload in workloads(manifests):
        if workload.kind not in SERVERS:
            continue
        mine = [each["spec"] for each in policies if selects(each["spec"]["podSelector"], workload.labels)]
        if not any("Ingress" in spec.get("policyTypes", []) for spec in mine):
            yield f"{workload.where}: everybody may connect to its pods"
        ports = _ports(workload)
        for rule in (rule for spec in mine for rule in spec.get("ingress", [])):
            for port in rule.get("ports", []):
                if port["port"] not in ports:
                    yield f"{workload.where}: its policy opens port {port['port']!r}, which it has not"


def nobody_gets_rights(manifests: Sequence[Manifest]) -> Iterator[str]:
    """No roles."""
    for manifest in of_kind(manifests, "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"):
        yield f"{manifest['kind']}/{manifest['metadata']['name']}: nothing here needs the API server"


def objects_are_well_named(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Once each, not too long, with the usual labels, and in the release's namespace."""
    counts = Counter((manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests)
    for (kind, name), count in counts.items():
        longest = STATEFUL_NAME_LENGTH_MAX if kind == "StatefulSet" else NAME_LENGTH_MAX
        if count > 1:
            yield f"{kind}/{name}: it is there {count} times"
        if len(name) > longest:
            yield f"{kind}/{name}: its name has {len(name)} characters"
    for manifest in manifests:
        labels = manifest["metadata"].get("labels", {})
        where = f"{manifest['kind']}/{manifest['metadata']['name']}"
        missing = [each for each in LABELS if each not in labels and not each.endswith(("component", "version"))]
        if missing:
            yield f"{where}: it lacks the labels {', '.join(missing)}"
    for workload in workloads(manifests):
        if LABELS[2] not in workload.labels:
            yield f"{workload.where}: its pods lack the label {LABELS[2]}"


POLICIES: Final[tuple[Policy, ...]] = (
    pods_have_no_rights,
    containers_are_confined,
    servers_are_probed,
    no_secret_is_plain,
    what_is_named_is_there,
    workloads_belong_together,
    disruptions_are_bounded,
    the_network_is_closed,
    nobody_gets_rights,
    objects_are_well_named,
)
