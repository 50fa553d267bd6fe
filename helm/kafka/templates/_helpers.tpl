{{/* Names, labels and decisions that several templates share. */}}

{{/* Not cut where it is too long: clients know the name by this rule. A StatefulSet's name goes into labels, with 11
characters more. */}}
{{- define "kafka.fullname" -}}
{{- $name := default (printf "%s-%s" .Release.Name (default "kafka" .Values.nameOverride)) .Values.fullnameOverride -}}
{{- if gt (len $name) 52 -}}
{{- fail (printf "kafka: the name %s has %d characters, 52 are possible: choose a shorter name for the release, or set fullnameOverride" $name (len $name)) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) -}}
{{- fail (printf "kafka: %s cannot be the name of a Service: it is to begin with a letter, and to have no dots. Choose another name for the release, or set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "kafka.nodesName" -}}{{ include "kafka.fullname" . }}-nodes{{- end -}}

{{- define "kafka.secretName" -}}
{{- if .Values.auth.existingSecret -}}
{{- tpl .Values.auth.existingSecret . -}}
{{- else -}}
{{- include "kafka.fullname" . }}-client
{{- end -}}
{{- end -}}

{{- define "kafka.usernameKey" -}}{{ ternary .Values.auth.usernameKey "username" (ne .Values.auth.existingSecret "") }}{{- end -}}
{{- define "kafka.passwordKey" -}}{{ ternary .Values.auth.passwordKey "password" (ne .Values.auth.existingSecret "") }}{{- end -}}

{{- define "kafka.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kafka.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "kafka.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "kafka.selectorLabels" -}}
app.kubernetes.io/name: {{ default "kafka" .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: kafka
{{- end -}}

{{- define "kafka.commonLabels" -}}
{{ include "kafka.selectorLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | trimAll "-._" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: styx
{{- end -}}

{{/* Of pods, without the chart's version: a new one alone is no reason to start them again. */}}
{{- define "kafka.podLabels" -}}
{{ include "kafka.commonLabels" . }}
{{- with merge (dict) (default (dict) .Values.podLabels) (default (dict) .Values.commonLabels) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kafka.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kafka.commonLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* How clients speak to a node: Kafka's name of the protocol. */}}
{{- define "kafka.protocol" -}}
{{- if .Values.auth.enabled -}}
{{- ternary "SASL_SSL" "SASL_PLAINTEXT" (ne .Values.tls.existingSecret "") -}}
{{- else -}}
{{- ternary "SSL" "PLAINTEXT" (ne .Values.tls.existingSecret "") -}}
{{- end -}}
{{- end -}}

{{/* Derived, not drawn: whoever installs a release of the same name again finds volumes that have this id. */}}
{{- define "kafka.clusterId" -}}
{{- if .Values.clusterId -}}
{{- .Values.clusterId -}}
{{- else -}}
{{- printf "S%sA" (printf "%s/%s" .Release.Namespace (include "kafka.fullname" .) | sha256sum | trunc 20) -}}
{{- end -}}
{{- end -}}

{{- define "kafka.voters" -}}
{{- $voters := list -}}
{{- range $node := until (int .Values.replicas) -}}
{{- $voters = append $voters (printf "%d@%s-%d.%s.%s.svc:9093" $node (include "kafka.fullname" $) $node (include "kafka.nodesName" $) $.Release.Namespace) -}}
{{- end -}}
{{- join "," $voters -}}
{{- end -}}

{{/* Refuses what would not work, or would lose data, in words. */}}
{{- define "kafka.check" -}}
{{- include "kafka.checkReplicas" . -}}
{{- include "kafka.checkVolumes" . -}}
{{- $heap := include "kafka.mebibytes" (printf "%si" (upper .Values.heap)) | int64 -}}
{{- $limit := include "kafka.mebibytes" (toString .Values.resources.limits.memory) | int64 -}}
{{- if gt (add $heap 256) $limit -}}
{{- fail (printf "kafka: heap is %s, but resources.limits.memory is %v: the JVM needs about 400 MB beside its heap, and would be killed. Raise the limit, or lower the heap" .Values.heap .Values.resources.limits.memory) -}}
{{- end -}}
{{- $wait := ternary (int .Values.shutdown.waitSeconds) 0 (eq (int .Values.replicas) 3) -}}
{{- if gt (add $wait 30) (int .Values.shutdown.gracePeriodSeconds) -}}
{{- fail (printf "kafka: shutdown.gracePeriodSeconds is %d: a node would be killed while it still waits, or hands over. Make it at least 30 more than shutdown.waitSeconds, %d" (int .Values.shutdown.gracePeriodSeconds) $wait) -}}
{{- end -}}
{{- end -}}

{{/* A StatefulSet's claims cannot be changed: the API server would say so, with half of the upgrade done. */}}
{{- define "kafka.checkVolumes" -}}
{{- $name := include "kafka.fullname" . -}}
{{- $there := lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- if $there -}}
{{- $claims := $there.spec.volumeClaimTemplates -}}
{{- if ne (empty $claims) (not .Values.persistence.enabled) -}}
{{- fail (printf "kafka: the release was installed with persistence.enabled=%t, which an upgrade cannot change: set it back" (not (empty $claims))) -}}
{{- end -}}
{{- if $claims -}}
{{- $size := (first $claims).spec.resources.requests.storage -}}
{{- if ne (include "kafka.mebibytes" $size) (include "kafka.mebibytes" .Values.persistence.size) -}}
{{- fail (printf "kafka: persistence.size is %s, but the claims of the StatefulSet %s are of %s, which an upgrade cannot change: set it back; or, where the storage class lets claims grow, patch each claim, kubectl delete --cascade=orphan statefulset %s, and upgrade" .Values.persistence.size $name $size $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* MiB of a quantity, rounded down. */}}
{{- define "kafka.mebibytes" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "P" 1000000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- $number := regexFind "^[0-9.]+(e[+]?[0-9]+)?" . -}}
{{- $unit := get $units (trimPrefix $number .) -}}
{{- if not $unit -}}
{{- fail (printf "kafka: %q is not understood; write it as in 1536Mi" .) -}}
{{- end -}}
{{- divf (mulf (float64 $number) (float64 $unit)) 1048576 | floor | int64 -}}
{{- end -}}

{{/* The voters of a quorum are named in each node's settings; nodes that come or go with them would vote in two quorums. */}}
{{- define "kafka.checkReplicas" -}}
{{- $there := dig "data" "server.properties" "" (lookup "v1" "ConfigMap" .Release.Namespace (include "kafka.fullname" .)) -}}
{{- $nodes := regexFind "controller[.]quorum[.]voters=.*" $there | splitList "," | len -}}
{{- if and $there (ne $nodes (int .Values.replicas)) -}}
{{- fail (printf "kafka: the release has %d nodes, and the number is fixed when it is installed: set kafka's replicas to %d (for another number, install another release, and move the data with styx backup and styx restore)" $nodes $nodes) -}}
{{- end -}}
{{- if and .Values.persistence.enabled (not $there) -}}
{{- $first := lookup "v1" "PersistentVolumeClaim" .Release.Namespace (printf "data-%s-0" (include "kafka.fullname" .)) -}}
{{- $second := lookup "v1" "PersistentVolumeClaim" .Release.Namespace (printf "data-%s-1" (include "kafka.fullname" .)) -}}
{{- $kept := ternary 3 1 (not (empty $second)) -}}
{{- if and (or $first $second) (ne $kept (int .Values.replicas)) -}}
{{- fail (printf "kafka: the volume claims data-%s-… are there, of an earlier release with replicas=%d; with replicas=%d its data would be lost. Set kafka's replicas to %d, or delete the claims" (include "kafka.fullname" .) $kept (int .Values.replicas) $kept) -}}
{{- end -}}
{{- end -}}
{{- end -}}
