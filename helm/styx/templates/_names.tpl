{{/* Names and labels. */}}

{{- define "styx.chartName" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Cut to 40 characters: what is appended, such as a StatefulSet's revision, must fit into a label. */}}
{{- define "styx.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name (include "styx.chartName" .) -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if contains (include "styx.chartName" .) .Release.Name -}}
{{- $name = .Release.Name -}}
{{- end -}}
{{- $name = $name | trunc 40 | trimAll "-." -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) -}}
{{- fail (printf "styx: %s cannot be the name of a Service: it is to begin with a letter, and to have no dots. Choose another name for the release, or set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "styx.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "styx.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "styx.secretName" -}}
{{- default (include "styx.fullname" .) (tpl .Values.secret.existingSecret .) -}}
{{- end -}}

{{- define "styx.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of a component: (dict "root" $ "component" "worker"). Never changes. */}}
{{- define "styx.selector" -}}
app.kubernetes.io/name: {{ include "styx.chartName" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object; component "" for those of the whole release, "more" the user's for this kind of object. */}}
{{- define "styx.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "styx.chartName" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: styx
{{- with merge (dict) (default (dict) .more) .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Labels of a pod: the selector's, those that policies of Kafka and the store select by, and the user's. No chart: a new
chart alone need not replace a pod. (dict "root" $ "component" "worker" "values" .Values.worker "store" true)
*/}}
{{- define "styx.podLabels" -}}
{{ include "styx.selector" . }}
app.kubernetes.io/version: {{ default .root.Chart.AppVersion .root.Values.image.tag | trunc 63 | trimAll "-._" | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: styx
{{- if .kafka }}
styx/kafka-client: "true"
{{- end }}
{{- if .store }}
styx/s3-client: "true"
{{- end }}
{{- with merge (dict) .values.podLabels .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
