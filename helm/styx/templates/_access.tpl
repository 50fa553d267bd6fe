{{/* Who may do what over HTTP: the Secret with keys and tokens, and what processes and tests are told of it. */}}

{{- define "styx.accessSecret" -}}
{{- default (printf "%s-access" (include "styx.fullname" .)) (tpl .Values.access.existingSecret .) -}}
{{- end -}}

{{- define "styx.gatewayUrl" -}}
{{ ternary "https" "http" (ne "" (tpl .Values.gateway.tls.existingSecret .)) }}://{{ include "styx.fullname" . }}-gateway:{{ int .Values.gateway.service.port }}
{{- end -}}

{{/* The token that coordinator and workers ask for, beside the one that the cluster's secret gives. */}}
{{- define "styx.factsToken" -}}
- name: STYX_FACTS_TOKEN
  valueFrom: {secretKeyRef: {name: {{ include "styx.accessSecret" . | quote }}, key: {{ .Values.access.factsTokenKey | quote }}}}
{{- end -}}

{{/* What whoever sends requests in the cluster proves itself with, and whom it trusts. */}}
{{- define "styx.clientEnv" -}}
{{- if not .Values.access.anonymous }}
- name: STYX_API_KEY
  valueFrom: {secretKeyRef: {name: {{ include "styx.accessSecret" . | quote }}, key: {{ .Values.access.apiKeyKey | quote }}}}
{{- end }}
{{- if tpl .Values.gateway.tls.existingSecret . }}
- name: STYX_CA
  value: /etc/styx/gateway-tls/ca.crt
{{- end }}
{{- end -}}

{{- define "styx.clientMounts" -}}
{{- if tpl .Values.gateway.tls.existingSecret . }}
- name: gateway-ca
  mountPath: /etc/styx/gateway-tls
  readOnly: true
{{- end }}
{{- end -}}

{{- define "styx.clientVolumes" -}}
{{- with tpl .Values.gateway.tls.existingSecret . }}
- name: gateway-ca
  secret: {secretName: {{ . | quote }}, defaultMode: 0444, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- end -}}

{{/* Options of a gateway. */}}
{{- define "styx.accessEnv" -}}
{{- $access := .Values.access -}}
{{- if $access.anonymous }}
- name: STYX_ANONYMOUS
  value: "true"
{{- else }}
- name: STYX_API_KEYS
  value: /etc/styx/access/keys.json
{{- with $access.jwt.keys }}
- name: STYX_JWT_KEYS
  value: {{ . | quote }}
- name: STYX_JWT_ISSUER
  value: {{ $access.jwt.issuer | quote }}
- name: STYX_JWT_AUDIENCE
  value: {{ join " " $access.jwt.audiences | quote }}
{{- with $access.jwt.algorithms }}
- name: STYX_JWT_ALGORITHM
  value: {{ join " " . | quote }}
{{- end }}
{{- end }}
{{- if $access.policy }}
- name: STYX_POLICY
  value: /etc/styx/policy/policy.toml
{{- end }}
{{- with $access.rateLimit }}
- name: STYX_RATE_LIMIT
  value: {{ . | toString | quote }}
{{- end }}
{{- with $access.inFlightLimit }}
- name: STYX_IN_FLIGHT_LIMIT
  value: {{ int . | quote }}
{{- end }}
{{- end }}
{{- if tpl .Values.gateway.tls.existingSecret . }}
- name: STYX_GATEWAY_TLS_CERT
  value: /etc/styx/gateway-tls/tls.crt
- name: STYX_GATEWAY_TLS_KEY
  value: /etc/styx/gateway-tls/tls.key
{{- end }}
{{- end -}}

{{- define "styx.accessMounts" -}}
{{- if not .Values.access.anonymous }}
- name: access
  mountPath: /etc/styx/access
  readOnly: true
{{- if .Values.access.policy }}
- name: policy
  mountPath: /etc/styx/policy
  readOnly: true
{{- end }}
{{- end }}
{{- if tpl .Values.gateway.tls.existingSecret . }}
- name: gateway-tls
  mountPath: /etc/styx/gateway-tls
  readOnly: true
{{- end }}
{{- end -}}

{{- define "styx.accessVolumes" -}}
{{- if not .Values.access.anonymous }}
- name: access
  secret:
    secretName: {{ include "styx.accessSecret" . | quote }}
    defaultMode: 0440
    items: [{key: {{ .Values.access.keysKey | quote }}, path: keys.json}]
{{- if .Values.access.policy }}
- name: policy
  configMap: {name: {{ include "styx.fullname" . }}-policy}
{{- end }}
{{- end }}
{{- with tpl .Values.gateway.tls.existingSecret . }}
- name: gateway-tls
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "styx.checkAccess" -}}
{{- $access := .Values.access -}}
{{- if and $access.jwt.keys (not (and $access.jwt.issuer $access.jwt.audiences)) -}}
{{- fail "access.jwt.keys is set, but not whose tokens are taken: set access.jwt.issuer and access.jwt.audiences" -}}
{{- end -}}
{{- if and $access.anonymous (or $access.policy $access.jwt.keys $access.rateLimit $access.inFlightLimit) -}}
{{- fail "access.anonymous lets everybody do everything, and access has rules, tokens or limits: leave one out" -}}
{{- end -}}
{{- end -}}
