{{/* The stores: which kind a URL names, and its options as variables. Which options there are, the store knows. */}}

{{/* s3, gs or az: (dict "root" $ "url" URL). */}}
{{- define "styx.storeScheme" -}}
{{- tpl .url .root | splitList "://" | first -}}
{{- end -}}

{{/*
The options of a store: (dict "root" $ "values" VALUES "url" URL "prefix" "STYX"). VALUES are those of `store`, `backup` or
`restore`; endpoint, region and the names of two keys are short for the options of s3.
*/}}
{{- define "styx.storeEnv" -}}
{{- $scheme := include "styx.storeScheme" . -}}
{{- $options := dict -}}
{{- $secrets := dict -}}
{{- if eq $scheme "s3" -}}
{{- $options = dict "endpoint" .values.endpoint "region" .values.region -}}
{{- $secrets = dict "access_key" .values.accessKeyKey "secret_key" .values.secretKeyKey -}}
{{- end -}}
{{- range $name, $value := merge (dict) .values.options $options -}}
{{- with tpl (toString $value) $.root }}
- name: {{ printf "%s_%s_%s" $.prefix $scheme $name | upper }}
  value: {{ . | quote }}
{{- end }}
{{- end -}}
{{- with tpl .values.existingSecret .root }}
{{- range $name, $key := merge (dict) $.values.secretOptions $secrets }}
- name: {{ printf "%s_%s_%s" $.prefix $scheme $name | upper }}
  valueFrom: {secretKeyRef: {name: {{ tpl $.values.existingSecret $.root | quote }}, key: {{ $key | quote }}}}
{{- end }}
{{- end }}
{{- end -}}

{{/* The address that a store's pods connect to, "" for that of the cloud: (dict "root" $ "values" VALUES "url" URL). */}}
{{- define "styx.storeAddress" -}}
{{- $endpoint := ternary .values.endpoint "" (eq (include "styx.storeScheme" .) "s3") -}}
{{- tpl (get .values.options "endpoint" | default $endpoint) .root -}}
{{- end -}}

{{- define "styx.checkStores" -}}
{{- range $what, $values := dict "store" .Values.store "backup" .Values.backup "restore" .Values.restore -}}
{{- $name := get (dict "store" "store.url" "backup" "backup.to" "restore" "restore.from") $what -}}
{{- $url := tpl (get (dict "store" $.Values.store.url "backup" $.Values.backup.to "restore" $.Values.restore.from) $what) $ -}}
{{- if and (or $url (eq $what "store")) (not (regexMatch "^(s3|gs|az)://[a-z0-9][a-z0-9._-]+[a-z0-9](/\\S*)?$" $url)) -}}
{{- fail (printf "%s is %q; write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX" $name $url) -}}
{{- end -}}
{{- $is := dict "root" $ "values" $values "url" $url -}}
{{- $endpoint := include "styx.storeAddress" $is -}}
{{- if contains "@" (printf "%s%s" $endpoint (tpl $values.endpoint $)) -}}
{{- fail (printf "%s.endpoint has an @: put no keys into values; name a Secret with them in %s.existingSecret." $what $what) -}}
{{- end -}}
{{- $isS3 := and (eq $what "store") (eq (include "styx.storeScheme" $is) "s3") -}}
{{- if and (or $endpoint $isS3) (not (regexMatch "^https?://[^/\\s]+\\S*$" $endpoint)) -}}
{{- fail (printf "%s.endpoint is %q; write https://HOST or http://HOST:PORT, for AWS https://s3.REGION.amazonaws.com" $what $endpoint) -}}
{{- end -}}
{{- $secret := tpl $values.existingSecret $ -}}
{{- if and $isS3 (not $secret) -}}
{{- fail "store.existingSecret is empty: name a Secret with the access key and the secret key." -}}
{{- end -}}
{{- if and $values.secretOptions (not $secret) -}}
{{- fail (printf "%s.secretOptions is set, but %s.existingSecret does not name the Secret that holds them." $what $what) -}}
{{- end -}}
{{- end -}}
{{- end -}}
