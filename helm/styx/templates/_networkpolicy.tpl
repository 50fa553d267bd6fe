{{/* Parts of NetworkPolicies. */}}

{{/* Pods of components of this release: (dict "root" $ "components" (list "worker")). */}}
{{- define "styx.peers" -}}
{{- range $number, $component := .components }}
{{- if $number }}
{{ end -}}
- podSelector:
    matchLabels:
      {{- include "styx.selector" (dict "root" $.root "component" $component) | nindent 6 }}
{{- end }}
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
