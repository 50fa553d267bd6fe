{{/*
Parts that all pods have in common. Each takes (dict "root" $ "component" NAME "values" VALUES-OF-THE-COMPONENT), and
says by "kafka", "store" and "peer" what the pod connects to: the log, the store, other processes of the cluster; by
"secret" that it needs the cluster's secret, by "tmpSize" that its /tmp has another size, and by "https" that its port
"http" speaks TLS.
*/}}

{{/* Fields of the pod's spec before its containers. */}}
{{- define "styx.podSpec" -}}
serviceAccountName: {{ include "styx.serviceAccountName" .root | quote }}
automountServiceAccountToken: false
{{- /* A Service called `styx` would set STYX_PORT. */}}
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat (default (list) .tolerations) .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .values.topologySpreadConstraints }}
{{- $selector := dict "matchLabels" (include "styx.selector" . | fromYaml) }}
topologySpreadConstraints:
  {{- range .values.topologySpreadConstraints }}
  - {{ merge (dict) . (dict "labelSelector" $selector) | toYaml | indent 4 | trim }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Fields of the container. */}}
{{- define "styx.container" -}}
image: {{ include "styx.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end -}}

{{- define "styx.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: http{{ if .https }}, scheme: HTTPS{{ end }}}
  {{- toYaml .values.probes.startup | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: http{{ if .https }}, scheme: HTTPS{{ end }}}
  {{- toYaml .values.probes.readiness | nindent 2 }}
{{- $liveness := .values.probes.liveness }}
{{- with .heldUpSeconds }}
{{- $failures := div (add . (sub (int (default 10 $liveness.periodSeconds)) 1)) (int (default 10 $liveness.periodSeconds)) }}
{{- $liveness = merge (dict "failureThreshold" (max (int (default 3 $liveness.failureThreshold)) $failures)) $liveness }}
{{- end }}
livenessProbe:
  httpGet: {path: /healthz, port: http{{ if .https }}, scheme: HTTPS{{ end }}}
  {{- toYaml $liveness | nindent 2 }}
{{- end -}}

{{/* Environment: each variable is an option of the process, so that `styx …` in the pod needs none either. */}}
{{- define "styx.env" -}}
{{- $values := .root.Values -}}
- name: STYX_CLUSTER
  value: {{ $values.cluster | quote }}
{{- if or .peer .secret }}
- name: STYX_SECRET_FILE
  value: /etc/styx/secret/secret
{{- end }}
{{- if .peer }}
- name: STYX_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: STYX_HOST
  value: {{ $values.listenAddress | quote }}
{{- if $values.tls.existingSecret }}
- name: STYX_TLS_CERTIFICATE
  value: /etc/styx/tls/tls.crt
- name: STYX_TLS_KEY
  value: /etc/styx/tls/tls.key
- name: STYX_TLS_AUTHORITY
  value: /etc/styx/tls/ca.crt
{{- end }}
{{- end }}
{{- if .kafka }}
- name: STYX_LOG
  value: {{ include "styx.logUrl" .root | quote }}
{{- with tpl $values.log.existingSecret .root }}
- name: STYX_KAFKA_USERNAME
  valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: {{ $values.log.usernameKey | quote }}}}
- name: STYX_KAFKA_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: {{ $values.log.passwordKey | quote }}}}
{{- end }}
{{- end }}
{{- if .store }}
- name: STYX_STORE
  value: {{ include "styx.storeUrl" .root | quote }}
{{ include "styx.storeEnv" (dict "root" .root "values" $values.store "url" $values.store.url "prefix" "STYX") | trim }}
{{- if $values.store.caSecret.name }}
- name: SSL_CERT_FILE
  value: /etc/styx/store/ca.crt
{{- end }}
{{- end }}
{{- end -}}

{{- define "styx.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if or .peer .secret }}
- name: secret
  mountPath: /etc/styx/secret
  readOnly: true
{{- end }}
{{- if .peer }}
{{- if .root.Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/styx/tls
  readOnly: true
{{- end }}
{{- end }}
{{- if and .kafka .root.Values.log.caSecret.name }}
- name: kafka-ca
  mountPath: /etc/styx/kafka
  readOnly: true
{{- end }}
{{- if and .store .root.Values.store.caSecret.name }}
- name: store-ca
  mountPath: /etc/styx/store
  readOnly: true
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "styx.volumes" -}}
{{- $values := .root.Values -}}
- name: tmp
  emptyDir: {sizeLimit: {{ default $values.tmpSize .tmpSize | toString | quote }}}
{{- if or .peer .secret }}
- name: secret
  secret:
    secretName: {{ include "styx.secretName" .root | quote }}
    defaultMode: 0440
    items: [{key: {{ $values.secret.key | quote }}, path: secret}]
{{- end }}
{{- if .peer }}
{{- with tpl $values.tls.existingSecret .root }}
- name: tls
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- if .kafka }}
{{- with tpl $values.log.caSecret.name .root }}
- name: kafka-ca
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0444
    items: [{key: {{ $values.log.caSecret.key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- if .store }}
{{- with tpl $values.store.caSecret.name .root }}
- name: store-ca
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0444
    items: [{key: {{ $values.store.caSecret.key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
