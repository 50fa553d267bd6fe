{{/* Parts of NetworkPolicies. */}}

{{/* A selector of pods of some components of this release: (dict "root" $ "components" (list "worker")). */}}
{{- define "styx.componentSelector" -}}
matchLabels:
  app.kubernetes.io/name: {{ include "styx.chartName" .root }}
  app.kubernetes.io/instance: {{ .root.Release.Name }}
matchExpressions:
  - {key: app.kubernetes.io/component, operator: In, values: [{{ join ", " .components }}]}
{{- end -}}

{{- define "styx.peers" -}}
- podSelector:
    {{- include "styx.componentSelector" . | nindent 4 }}
{{- end -}}

{{/* Name servers: anywhere, for some clusters run one on each node. */}}
{{- define "styx.egressDns" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end -}}

{{- define "styx.egressKafka" -}}
{{- include "styx.egressTo" .Values.networkPolicy.egress.kafka -}}
{{- end -}}

{{- define "styx.egressStore" -}}
{{- include "styx.egressTo" .Values.networkPolicy.egress.store -}}
{{- end -}}

{{- define "styx.egressTo" -}}
- ports:
    {{- range .ports }}
    - {port: {{ int . }}, protocol: TCP}
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
