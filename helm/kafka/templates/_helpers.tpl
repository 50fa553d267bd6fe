{{/* Names, labels and decisions that several templates share. */}}

{{/* Not cut where it is too long: clients know the name by this rule. A StatefulSet's name goes into labels, with 11
characters more. */}}
{{- define "kafka.fullname" -}}
{{- $name := default (printf "%s-%s" .Release.Name (default "kafka" .Values.nameOverride)) .Values.fullnameOverride -}}
{{- if gt (len $name) 52 -}}
{{- fail (printf "kafka: the name %s has %d characters, 52 are possible: choose a shorter name for the release, or set fullnameOverride" $name (len $name)) -}}
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
app.kubernetes.io/name: {{ default "kafka" .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: kafka
{{- end -}}

{{/* Of pods, without the chart's version: a new one alone is no reason to start them again. */}}
{{- define "kafka.podLabels" -}}
{{ include "kafka.selectorLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: styx
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kafka.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kafka.podLabels" . }}
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

{{/* The voters of a quorum are named in each node's settings; nodes that come or go with them would vote in two quorums. */}}
{{- define "kafka.checkReplicas" -}}
{{- $there := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "kafka.fullname" .) -}}
{{- if and $there (ne (int $there.spec.replicas) (int .Values.replicas)) -}}
{{- fail (printf "kafka: the release has %d nodes, and the number is fixed when it is installed: set kafka's replicas to %d (for another number, install another release, and move the data with styx backup and styx restore)" (int $there.spec.replicas) (int $there.spec.replicas)) -}}
{{- end -}}
{{- end -}}
