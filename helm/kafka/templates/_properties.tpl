{{/* server.properties without what differs between nodes, which start.sh adds. */}}

{{- define "kafka.properties" -}}
{{- $replicas := int .Values.replicas -}}
{{- $copies := ternary 3 1 (eq $replicas 3) -}}
{{- $needed := ternary 2 1 (eq $replicas 3) -}}
{{- $protocol := include "kafka.protocol" . -}}
process.roles=broker,controller
controller.quorum.voters={{ include "kafka.voters" . }}
listeners=CLIENT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
inter.broker.listener.name=CLIENT
listener.security.protocol.map=CLIENT:{{ $protocol }},CONTROLLER:{{ $protocol }}
# Not the volume's own folder, which may have a lost+found.
log.dirs=/var/lib/kafka/data/topics

# A record counts once a majority of its copies is there.
default.replication.factor={{ $copies }}
min.insync.replicas={{ $needed }}
offsets.topic.replication.factor={{ $copies }}
offsets.topic.num.partitions=6
transaction.state.log.replication.factor={{ $copies }}
transaction.state.log.min.isr={{ $needed }}
transaction.state.log.num.partitions=6
share.coordinator.state.topic.replication.factor={{ $copies }}
share.coordinator.state.topic.min.isr={{ $needed }}
share.coordinator.state.topic.num.partitions=1
# A copy that lags never leads: better no leader than lost records.
unclean.leader.election.enable=false

# A topic is made on purpose, with the right number of partitions, or not at all.
auto.create.topics.enable=false
message.max.bytes=8388608

broker.session.timeout.ms={{ int .Values.sessionTimeoutMs }}
broker.heartbeat.interval.ms={{ div (int .Values.sessionTimeoutMs) 4 }}
# After a crash the last segment of each partition is read again.
log.segment.bytes=67108864
# Part of the heap from the start on; few topics are compacted, and they are small.
log.cleaner.dedupe.buffer.size=16777216
group.initial.rebalance.delay.ms=0
{{- if or .Values.auth.enabled .Values.tls.existingSecret }}

# ${dir:…} stands for what a mounted Secret says.
config.providers=dir
config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
config.providers.dir.param.allowed.paths=/etc/kafka-secrets
{{- end }}
{{- if .Values.auth.enabled }}
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
{{- $user := printf "${dir:/etc/kafka-secrets/client:%s}" (include "kafka.usernameKey" .) }}
{{- $password := printf "${dir:/etc/kafka-secrets/client:%s}" (include "kafka.passwordKey" .) }}
{{- range list "client" "controller" }}
listener.name.{{ . }}.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="{{ $user }}" password="{{ $password }}" user_{{ $user }}="{{ $password }}";
{{- end }}
{{- end }}
{{- if .Values.tls.existingSecret }}
ssl.keystore.type=PEM
ssl.keystore.certificate.chain=${dir:/etc/kafka-secrets/tls:{{ .Values.tls.certificateKey }}}
ssl.keystore.key=${dir:/etc/kafka-secrets/tls:{{ .Values.tls.privateKeyKey }}}
ssl.truststore.type=PEM
ssl.truststore.certificates=${dir:/etc/kafka-secrets/tls:{{ .Values.tls.authorityKey }}}
{{- end }}
{{- range $name, $value := .Values.config }}
{{ $name }}={{ if kindIs "string" $value }}{{ $value }}{{ else }}{{ toJson $value }}{{ end }}
{{- end }}
{{- end -}}

{{/* What the ConfigMap has. */}}
{{- define "kafka.configuration" -}}
server.properties: |
  {{- include "kafka.properties" . | trim | nindent 2 }}
{{- range list "start.sh" "stop.sh" "answers.sh" "log4j2.xml" }}
{{ . }}: |
  {{- $.Files.Get (printf "files/%s" .) | trim | nindent 2 }}
{{- end }}
{{- end -}}
