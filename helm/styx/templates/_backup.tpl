{{/* Where backups go and come from. */}}

{{/* Environment of another S3: (dict "root" $ "values" .Values.backup "which" "TO"). */}}
{{- define "styx.otherStoreEnv" -}}
{{- with tpl .values.endpoint .root }}
- name: STYX_{{ $.which }}_S3_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .values.region }}
- name: STYX_{{ $.which }}_S3_REGION
  value: {{ . | quote }}
{{- end }}
{{- with tpl .values.existingSecret .root }}
- name: STYX_{{ $.which }}_S3_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: {{ $.values.accessKeyKey | quote }}}}
- name: STYX_{{ $.which }}_S3_SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: {{ $.values.secretKeyKey | quote }}}}
{{- end }}
{{- end -}}

{{/* The container that restores before a coordinator begins: (the coordinator's pod). */}}
{{- define "styx.restoreContainer" -}}
{{- $restore := .root.Values.restore -}}
- name: restore
  {{- include "styx.container" (dict "root" .root "values" $restore) | nindent 2 }}
  # At each later start it finds the cluster's data, and does nothing.
  args: ["restore", "--if-empty"]
  env:
    {{- include "styx.env" . | nindent 4 }}
    - name: STYX_RESTORE_FROM
      value: {{ tpl $restore.from .root | quote }}
    {{- with $restore.backup }}
    - name: STYX_RESTORE_BACKUP
      value: {{ . | quote }}
    {{- end }}
    {{- if $restore.secret.name }}
    - name: STYX_FROM_SECRET_FILE
      value: /etc/styx/old-secret/secret
    {{- end }}
    {{- with include "styx.otherStoreEnv" (dict "root" .root "values" $restore "which" "FROM") | trim }}
    {{- . | nindent 4 }}
    {{- end }}
  volumeMounts:
    {{- include "styx.volumeMounts" (merge (dict "values" dict) .) | nindent 4 }}
    {{- if $restore.secret.name }}
    - name: old-secret
      mountPath: /etc/styx/old-secret
      readOnly: true
    {{- end }}
{{- end -}}
