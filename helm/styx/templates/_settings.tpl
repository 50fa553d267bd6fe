{{/* What values come to: addresses, the app, and the checks that a schema cannot make. */}}

{{- define "styx.coordinatorHost" -}}
{{ include "styx.fullname" . }}-coordinator
{{- end -}}

{{/* MODULE:APP that the coordinator deploys; "" if only the app's name is known. */}}
{{- define "styx.app" -}}
{{- if .Values.app.module -}}
{{- .Values.app.module -}}
{{- else if .Values.app.name -}}
{{- else if include "styx.benchmarkApp" . -}}
{{- get (dict "ycsbt" "benchmarks.ycsbt.bank:app" "tpcc" "benchmarks.tpcc.app:app" "deathstar.hotel" "benchmarks.deathstar.hotel.app:app" "deathstar.movie" "benchmarks.deathstar.movie.app:app" "marketplace" "benchmarks.marketplace.app:app") .Values.benchmark.workload -}}
{{- else -}}
examples.bank:app
{{- end -}}
{{- end -}}

{{/* The workload, if it chooses the app. */}}
{{- define "styx.benchmarkApp" -}}
{{- if and .Values.benchmark.enabled (not .Values.app.module) (not .Values.app.name) -}}
{{- .Values.benchmark.workload -}}
{{- end -}}
{{- end -}}

{{/* The store, which is of one app for ever: the benchmark's has a place of its own. */}}
{{- define "styx.storeUrl" -}}
{{- $url := tpl .Values.store.url . | trimSuffix "/" -}}
{{- with include "styx.benchmarkApp" . -}}
{{- printf "%s/benchmark/%s" $url . -}}
{{- else -}}
{{- $url -}}
{{- end -}}
{{- end -}}

{{/*
The field `replicas` of an object: the value, or else the number that runs, since a field that goes away counts as 1.
(dict "root" $ "kind" "Deployment" "name" NAME "replicas" VALUE-OR-NULL)
*/}}
{{- define "styx.replicas" -}}
{{- if not (kindIs "invalid" .replicas) -}}
replicas: {{ int .replicas }}
{{- else -}}
{{- with lookup "apps/v1" .kind .root.Release.Namespace .name -}}
replicas: {{ int .spec.replicas }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Name of the ConfigMap with the app's files; "" if there is none. */}}
{{- define "styx.appFiles" -}}
{{- if .Values.app.existingConfigMap -}}
{{- tpl .Values.app.existingConfigMap . -}}
{{- else if .Values.app.files -}}
{{- include "styx.fullname" . }}-app
{{- end -}}
{{- end -}}

{{/* The names by which gateways are reached. Addresses need not be among them: no page can pretend to be one. */}}
{{- define "styx.allowedHosts" -}}
{{- $service := printf "%s-gateway" (include "styx.fullname" .) -}}
{{- $namespaced := printf "%s.%s" $service .Release.Namespace -}}
{{- $hosts := list $service $namespaced (printf "%s.svc" $namespaced) (printf "%s.svc.cluster.local" $namespaced) -}}
{{- with .Values.gateway.ingress -}}
{{- if .enabled -}}
{{- range .hosts -}}
{{- $hosts = append $hosts .host -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.gateway.allowedHosts -}}
{{- $hosts = append $hosts (tpl . $) -}}
{{- end -}}
{{- uniq $hosts | join " " -}}
{{- end -}}

{{- define "styx.logUrl" -}}
{{- $url := tpl .Values.log.url . -}}
{{- if .Values.log.caSecret.name -}}
{{- printf "%s%scafile=/etc/styx/kafka/ca.crt" $url (ternary "&" "?" (contains "?" $url)) -}}
{{- else -}}
{{- $url -}}
{{- end -}}
{{- end -}}

{{/* Whether `helm test` runs the bank's audit. */}}
{{- define "styx.testsBank" -}}
{{- $auto := and (eq .Values.tests.kind "auto") (eq (include "styx.app" .) "examples.bank:app") -}}
{{- if or $auto (eq .Values.tests.kind "bank") -}}true{{- end -}}
{{- end -}}

{{/* Fails, in words, where values do not fit each other. Makes no text. */}}
{{- define "styx.check" -}}
{{- include "styx.checkData" . -}}
{{- with .Values.app -}}
{{- if and .module .name -}}
{{- fail "app.module and app.name are both set: the module knows its app's name. Set one of them." -}}
{{- end -}}
{{- if and .files .existingConfigMap -}}
{{- fail "app.files and app.existingConfigMap are both set. Set one of them." -}}
{{- end -}}
{{- if and (or .files .existingConfigMap) (not .module) -}}
{{- fail "app.files or app.existingConfigMap is set, but app.module does not say which of their modules the app is in: --set app.module=MODULE:APP" -}}
{{- end -}}
{{- end -}}
{{- if gt (int (default 1 .Values.worker.replicas)) (int .Values.coordinator.slots) -}}
{{- fail (printf "worker.replicas is %d, but coordinator.slots is %d: a worker without a slot would have nothing to do. Lower worker.replicas; the number of slots is for ever." (int .Values.worker.replicas) (int .Values.coordinator.slots)) -}}
{{- end -}}
{{- if and .Values.backup.enabled (not .Values.backup.to) -}}
{{- fail "backup.enabled is set, but backup.to does not say where backups go: s3://BUCKET/PREFIX or another store, not below store.url" -}}
{{- end -}}
{{- if and .Values.backup.enabled (eq (tpl .Values.backup.to . | trimSuffix "/") (include "styx.storeUrl" .)) (not .Values.backup.endpoint) -}}
{{- fail "backup.to is store.url: a backup is to outlive the store. Name another bucket or prefix, best on another server." -}}
{{- end -}}
{{- with .Values.serviceMonitor -}}
{{- if gt (include "styx.milliseconds" .scrapeTimeout | int64) (include "styx.milliseconds" .interval | int64) -}}
{{- fail (printf "serviceMonitor.scrapeTimeout is %s, but serviceMonitor.interval is %s: the Prometheus operator would leave the monitors out. Lower scrapeTimeout." .scrapeTimeout .interval) -}}
{{- end -}}
{{- end -}}
{{- include "styx.checkAccess" . -}}
{{- include "styx.checkService" .Values.gateway.service -}}
{{- include "styx.checkEgress" . -}}
{{- include "styx.checkForEver" . -}}
{{- end -}}

{{- define "styx.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- mul (regexFind "^[0-9]+" . | int64) (get $units (regexFind "[a-z]+$" .)) -}}
{{- end -}}

{{/* Whether pods may connect to what they are told to connect to. */}}
{{- define "styx.checkEgress" -}}
{{- $egress := .Values.networkPolicy.egress -}}
{{- if and .Values.networkPolicy.enabled $egress.enabled -}}
{{- $hosts := tpl .Values.log.url . | trimPrefix "kafka://" | splitList "?" | first | splitList "/" | first -}}
{{- range splitList "," $hosts -}}
{{- include "styx.checkPort" (dict "what" "log.url" "host" . "default" "9092" "ports" $egress.kafka.ports "where" "kafka") -}}
{{- end -}}
{{- $stores := list (dict "what" "store" "url" .Values.store.url "values" .Values.store "where" "store") -}}
{{- if .Values.backup.enabled -}}
{{- $stores = append $stores (dict "what" "backup" "url" .Values.backup.to "values" .Values.backup "where" "backup") -}}
{{- end -}}
{{- if .Values.restore.from -}}
{{- $stores = append $stores (dict "what" "restore" "url" .Values.restore.from "values" .Values.restore "where" "backup") -}}
{{- end -}}
{{- range $stores -}}
{{- $url := include "styx.storeAddress" (merge (dict "root" $) .) -}}
{{- if $url -}}
{{- $host := regexReplaceAll "^https?://" $url "" | splitList "/" | first -}}
{{- $default := ternary "443" "80" (hasPrefix "https:" $url) -}}
{{- include "styx.checkPort" (dict "what" (printf "%s.endpoint" .what) "host" $host "default" $default "ports" (get $egress .where).ports "where" .where) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "styx.checkPort" -}}
{{- $port := regexFind ":[0-9]+$" .host | trimPrefix ":" | default .default | int -}}
{{- $open := list -}}
{{- range .ports -}}
{{- $open = append $open (int .) -}}
{{- end -}}
{{- if not (has $port $open) -}}
{{- fail (printf "networkPolicy.egress is enabled, but does not let pods to port %d of %s, which %s names: add it to networkPolicy.egress.%s.ports" $port .host .what .where) -}}
{{- end -}}
{{- end -}}

{{/* What the API server would refuse, with half of the release made. */}}
{{- define "styx.checkService" -}}
{{- if and .nodePort (eq .type "ClusterIP") -}}
{{- fail "gateway.service.nodePort is set, but gateway.service.type is ClusterIP: set the type to NodePort or LoadBalancer." -}}
{{- end -}}
{{- if and .externalTrafficPolicy (eq .type "ClusterIP") -}}
{{- fail "gateway.service.externalTrafficPolicy is set, but gateway.service.type is ClusterIP: set the type to NodePort or LoadBalancer." -}}
{{- end -}}
{{- if and (or .loadBalancerClass .loadBalancerSourceRanges) (ne .type "LoadBalancer") -}}
{{- fail (printf "gateway.service.loadBalancerClass or loadBalancerSourceRanges is set, but gateway.service.type is %s: set the type to LoadBalancer." .type) -}}
{{- end -}}
{{- end -}}

{{- define "styx.checkData" -}}
{{- $log := tpl .Values.log.url . -}}
{{- if contains "@" $log -}}
{{- fail "log.url has an @: put no user name or password into values; name a Secret with them in log.existingSecret." -}}
{{- end -}}
{{- $broker := "(\\[[0-9a-fA-F:.]+\\]|[^\\]\\[:/,?\\s]+)(:[0-9]{1,5})?" -}}
{{- $option := "((?i:protocol=(SASL_)?(PLAINTEXT|SSL)|mechanism=(PLAIN|SCRAM-SHA-256|SCRAM-SHA-512))|cafile=[^&\\s]+)" -}}
{{- if not (regexMatch (printf "^kafka://%s(,%s)*/?(\\?%s(&%s)*)?$" $broker $broker $option $option) $log) -}}
{{- fail (printf "log.url is %q; write kafka://HOST:PORT[,HOST:PORT], with ?protocol=SASL_SSL or another protocol, and &mechanism=SCRAM-SHA-512 or another mechanism, if need be" $log) -}}
{{- end -}}
{{- if and (contains "=SASL_" (upper $log)) (not (tpl .Values.log.existingSecret .)) -}}
{{- fail "log.url asks for SASL, but log.existingSecret is empty: name a Secret with user name and password." -}}
{{- end -}}
{{- if and (not (contains "=SASL_" (upper $log))) (tpl .Values.log.existingSecret .) -}}
{{- fail (printf "log.existingSecret is %s, but log.url does not ask for a login with it: add ?protocol=SASL_SSL&mechanism=…, or set log.existingSecret to \"\"." (tpl .Values.log.existingSecret .)) -}}
{{- end -}}
{{- if and .Values.log.caSecret.name (contains "cafile=" $log) -}}
{{- fail "log.url has a cafile, and log.caSecret.name is set: the chart adds the cafile of log.caSecret by itself. Remove one." -}}
{{- end -}}
{{- if and .Values.log.caSecret.name (not (contains "SSL" (upper $log))) -}}
{{- fail "log.caSecret.name is set, but log.url does not say ?protocol=SSL or SASL_SSL." -}}
{{- end -}}
{{- include "styx.checkStores" . -}}
{{- end -}}

{{/* What an upgrade cannot change, compared with what runs. Rendered without the cluster it compares nothing. */}}
{{- define "styx.checkForEver" -}}
{{- if .Release.IsUpgrade -}}
{{- $old := lookup "apps/v1" "Deployment" .Release.Namespace (include "styx.coordinatorHost" .) -}}
{{- $was := dig "metadata" "annotations" (dict) $old -}}
{{- range $key, $value := dict "slots" .Values.coordinator.slots "replyPartitions" .Values.coordinator.replyPartitions -}}
{{- $before := get $was (printf "styx/%s" $key) -}}
{{- if and $before (ne $before (toString (int $value))) -}}
{{- fail (printf "coordinator.%s is %d, but this release was installed with %s, and that is for ever. Set it back." $key (int $value) $before) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
