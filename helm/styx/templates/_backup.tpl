{{/* Where backups go and come from. */}}

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
    {{- with include "styx.storeEnv" (dict "root" .root "values" $restore "url" $restore.from "prefix" "STYX_FROM") | trim }}
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
