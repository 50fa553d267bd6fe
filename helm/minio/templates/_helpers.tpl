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
