{{/* Names, labels and decisions that several templates share. */}}

{{/* Not cut where it is too long: clients know the name by this rule. A StatefulSet's name goes into labels, with 11
characters more. */}}
{{- define "minio.fullname" -}}
{{- $name := default (printf "%s-%s" .Release.Name (default "minio" .Values.nameOverride)) .Values.fullnameOverride -}}
{{- if gt (len $name) 52 -}}
{{- fail (printf "minio: the name %s has %d characters, 52 are possible: choose a shorter name for the release, or set fullnameOverride" $name (len $name)) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) -}}
{{- fail (printf "minio: %s cannot be the name of a Service: it is to begin with a letter, and to have no dots. Choose another name for the release, or set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "minio.secretName" -}}
{{- if .Values.auth.existingSecret -}}
{{- tpl .Values.auth.existingSecret . -}}
{{- else -}}
{{- include "minio.fullname" . }}
{{- end -}}
{{- end -}}

{{- define "minio.userKey" -}}{{ ternary .Values.auth.userKey "rootUser" (ne .Values.auth.existingSecret "") }}{{- end -}}
{{- define "minio.passwordKey" -}}{{ ternary .Values.auth.passwordKey "rootPassword" (ne .Values.auth.existingSecret "") }}{{- end -}}

{{- define "minio.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "minio.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "minio.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "minio.selectorLabels" -}}
app.kubernetes.io/name: {{ default "minio" .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: minio
{{- end -}}

{{- define "minio.commonLabels" -}}
{{ include "minio.selectorLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | trimAll "-._" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: styx
{{- end -}}

{{/* Of pods, without the chart's version: a new one alone is no reason to start them again. */}}
{{- define "minio.podLabels" -}}
{{ include "minio.commonLabels" . }}
{{- with merge (dict) (default (dict) .Values.podLabels) (default (dict) .Values.commonLabels) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "minio.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "minio.commonLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A StatefulSet's claims cannot be changed: the API server would say so, with half of the upgrade done. */}}
{{- define "minio.checkVolumes" -}}
{{- $name := include "minio.fullname" . -}}
{{- $there := lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- if $there -}}
{{- $claims := $there.spec.volumeClaimTemplates -}}
{{- if ne (empty $claims) (not .Values.persistence.enabled) -}}
{{- fail (printf "minio: the release was installed with persistence.enabled=%t, which an upgrade cannot change: set it back" (not (empty $claims))) -}}
{{- end -}}
{{- if $claims -}}
{{- $size := (first $claims).spec.resources.requests.storage -}}
{{- if ne (include "minio.mebibytes" $size) (include "minio.mebibytes" .Values.persistence.size) -}}
{{- fail (printf "minio: persistence.size is %s, but the claims of the StatefulSet %s are of %s, which an upgrade cannot change: set it back; or, where the storage class lets claims grow, patch each claim, kubectl delete --cascade=orphan statefulset %s, and upgrade" .Values.persistence.size $name $size $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* MiB of a quantity, rounded down. */}}
{{- define "minio.mebibytes" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "P" 1000000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- $number := regexFind "^[0-9.]+(e[+]?[0-9]+)?" . -}}
{{- $unit := get $units (trimPrefix $number .) -}}
{{- if not $unit -}}
{{- fail (printf "minio: %q is not understood; write it as in 1536Mi" .) -}}
{{- end -}}
{{- divf (mulf (float64 $number) (float64 $unit)) 1048576 | floor | int64 -}}
{{- end -}}
