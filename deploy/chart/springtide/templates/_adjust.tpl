{{/*
The documents of a file below files/, in the release's namespace. The files hold the objects that kustomize builds from deploy/base.
*/}}
{{- define "springtide.file" -}}
{{- .root.Files.Get .file | replace "springtide-system" .root.Release.Namespace }}
{{- end }}

{{/* A pod's part that all components share: images, pull policy and secrets. */}}
{{- define "springtide.pod" -}}
{{- $v := .root.Values -}}
{{- range $c := .pod.containers }}
{{- $name := regexReplaceAll "^.*/|[:@].*$" $c.image "" }}
{{- $_ := set $c "image" (printf "%s/%s:%s" $v.image.registry $name (default $.root.Chart.AppVersion $v.image.tag)) }}
{{- if ne $v.image.pullPolicy "IfNotPresent" }}{{ $_ := set $c "imagePullPolicy" $v.image.pullPolicy }}{{ end }}
{{- end }}
{{- with $v.image.pullSecrets }}{{ $_ := set $.pod "imagePullSecrets" . }}{{ end }}
{{- end }}

{{/* Where a component's pods run. own are tolerations that the values add to. */}}
{{- define "springtide.where" -}}
{{- with .values.nodeSelector }}{{ $_ := set $.pod "nodeSelector" . }}{{ end }}
{{- with .values.tolerations }}{{ $_ := set $.pod "tolerations" (concat (default list $.own) .) }}{{ end }}
{{- with .values.affinity }}{{ $_ := set $.pod "affinity" . }}{{ end }}
{{- end }}

{{/*
What values add to a component's pods: labels, annotations, spread, and the environment and volumes of its container. A label of ours stays,
since selectors need it.
*/}}
{{- define "springtide.custom" -}}
{{- $v := .values }}
{{- $m := .template.metadata }}
{{- $pod := .template.spec }}
{{- $c := first $pod.containers }}
{{- with $v.podLabels }}{{ $_ := set $m "labels" (merge $m.labels .) }}{{ end }}
{{- with $v.podAnnotations }}{{ $_ := set $m "annotations" (merge (default dict $m.annotations) .) }}{{ end }}
{{- with $v.topologySpreadConstraints }}{{ $_ := set $pod "topologySpreadConstraints" . }}{{ end }}
{{- with $v.extraEnv }}{{ $_ := set $c "env" (concat (default list $c.env) .) }}{{ end }}
{{- with $v.extraVolumes }}{{ $_ := set $pod "volumes" (concat (default list $pod.volumes) .) }}{{ end }}
{{- with $v.extraVolumeMounts }}{{ $_ := set $c "volumeMounts" (concat (default list $c.volumeMounts) .) }}{{ end }}
{{- end }}

{{/* Metrics by TLS, as the component secure-metrics of deploy/base has them. */}}
{{- define "springtide.secureMetrics" -}}
{{- $o := .object }}
{{- if .root.Values.monitoring.secureMetrics }}
{{- $port := dict "name" "metrics" "port" 8444 "targetPort" "metrics" }}
{{- $name := $o.metadata.name }}
{{- if has $o.kind (list "Deployment" "DaemonSet") }}
{{- $c := first $o.spec.template.spec.containers }}
{{- $_ := set $c "args" (append $c.args "--metrics-listen=:8444") }}
{{- $_ := set $c "ports" (append $c.ports (dict "name" "metrics" "containerPort" 8444)) }}
{{- else if and (eq $o.kind "NetworkPolicy") (eq $name "springtide-controller") }}
{{- $rule := first $o.spec.ingress }}
{{- $_ := set $rule "ports" (append $rule.ports (dict "port" "metrics")) }}
{{- else if and (eq $o.kind "Service") (eq $name "springtide-metrics") }}
{{- $_ := set $o.spec "ports" (list $port) }}
{{- else if and (eq $o.kind "Service") (eq $name "springtide-scheduler") }}
{{- $_ := set $o.spec "ports" (append $o.spec.ports $port) }}
{{- else if eq $o.kind "ServiceMonitor" }}
{{- $e := first $o.spec.endpoints }}
{{- $_ := set $e "port" "metrics" }}
{{- $_ := set $e "scheme" "https" }}
{{- $_ := set $e "bearerTokenFile" "/var/run/secrets/kubernetes.io/serviceaccount/token" }}
{{- $_ := set $e "tlsConfig" (dict "insecureSkipVerify" true) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "springtide.controller" -}}
{{- $v := .root.Values }}
{{- $spec := .object.spec }}
{{- $pod := $spec.template.spec }}
{{- $c := first $pod.containers }}
{{- include "springtide.pod" (dict "root" .root "pod" $pod) }}
{{- include "springtide.where" (dict "values" $v.controller "pod" $pod "own" $pod.tolerations) }}
{{- $_ := set $spec "replicas" $v.controller.replicas }}
{{- $_ := set $c "resources" $v.controller.resources }}
{{- $args := list }}
{{- range $c.args }}
{{- if hasPrefix "--prometheus=" . }}{{ $args = append $args (printf "--prometheus=%s" $v.controller.prometheus) }}
{{- range $v.controller.prometheusMatchers }}{{ $args = append $args (printf "--prometheus-matcher=%s" .) }}{{ end }}
{{- else if and (hasPrefix "--store=" .) (eq $v.store.type "postgres") }}{{ $args = append $args "--store=$(STORE_DSN)" }}
{{- else }}{{ $args = append $args . }}{{ end }}
{{- end }}
{{- if $v.controller.config }}
{{- $args = append $args "--config=/etc/springtide/config.yaml" }}
{{- $_ := set $c "volumeMounts" (append $c.volumeMounts (dict "name" "config" "mountPath" "/etc/springtide" "readOnly" true)) }}
{{- $_ := set $pod "volumes" (append $pod.volumes (dict "name" "config" "configMap" (dict "name" "springtide-config"))) }}
{{- $_ := set $spec.template.metadata "annotations" (dict "checksum/config" (toYaml $v.controller.config | sha256sum)) }}
{{- end }}
{{- $_ := set $c "args" (concat $args $v.controller.extraArgs) }}
{{- if eq $v.store.type "volume" }}
{{- if gt (int $v.controller.replicas) 1 }}{{ fail "store.type volume is for one controller, since one process writes the file: set controller.replicas to 1, or take another store.type" }}{{ end }}
{{- $_ := set $spec "strategy" (dict "type" "Recreate") }}
{{- range $i, $volume := $pod.volumes }}
{{- if eq $volume.name "store" }}{{ $_ := unset $volume "emptyDir" }}{{ $_ := set $volume "persistentVolumeClaim" (dict "claimName" "springtide-store") }}{{ end }}
{{- end }}
{{- else if eq $v.store.type "postgres" }}
{{- $secret := $v.store.postgres.secret }}
{{- $_ := set $c "env" (concat $c.env (list
  (dict "name" "STORE_DSN" "valueFrom" (dict "secretKeyRef" (dict "name" $secret "key" "dsn")))
  (dict "name" "PGPASSWORD" "valueFrom" (dict "secretKeyRef" (dict "name" $secret "key" "password"))))) }}
{{- range $field := list "volumeMounts" }}
{{- $rest := list }}
{{- range $m := $c.volumeMounts }}{{ if ne $m.name "store" }}{{ $rest = append $rest $m }}{{ end }}{{ end }}
{{- $_ := set $c "volumeMounts" $rest }}
{{- end }}
{{- $rest := list }}
{{- range $m := $pod.volumes }}{{ if ne $m.name "store" }}{{ $rest = append $rest $m }}{{ end }}{{ end }}
{{- $_ := set $pod "volumes" $rest }}
{{- end }}
{{- include "springtide.custom" (dict "values" $v.controller "template" $spec.template) }}
{{- end }}

{{/* A component next to the controller: its pods' images, place, resources and arguments. */}}
{{- define "springtide.extra" -}}
{{- $pod := .object.spec.template.spec }}
{{- include "springtide.pod" (dict "root" .root "pod" $pod) }}
{{- include "springtide.where" (dict "values" .values "pod" $pod "own" .own) }}
{{- $c := first $pod.containers }}
{{- with .values.resources }}{{ $_ := set $c "resources" . }}{{ end }}
{{- with .values.extraArgs }}{{ $_ := set $c "args" (concat $c.args .) }}{{ end }}
{{- include "springtide.custom" (dict "values" .values "template" .object.spec.template) }}
{{- end }}

{{/* What the components hostpid and resctrl of deploy/base/agent add. */}}
{{- define "springtide.agent" -}}
{{- $pod := .object.spec.template.spec }}
{{- $c := first $pod.containers }}
{{- if or .values.hostPID .values.resctrl }}
{{- $_ := set $pod "hostPID" true }}
{{- $_ := set $c.securityContext.capabilities "add" (concat $c.securityContext.capabilities.add (list "DAC_OVERRIDE" "SYS_RESOURCE")) }}
{{- end }}
{{- if .values.resctrl }}
{{- $_ := set $c "volumeMounts" (append $c.volumeMounts (dict "name" "resctrl" "mountPath" "/sys/fs/resctrl")) }}
{{- $_ := set $pod "volumes" (append $pod.volumes (dict "name" "resctrl" "hostPath" (dict "path" "/sys/fs/resctrl" "type" "Directory"))) }}
{{- end }}
{{- end }}

{{/* The scheduler's Deployment for one partition of several. Its pods have a label more, so that each Deployment finds its own. */}}
{{- define "springtide.partition" -}}
{{- $o := .object }}
{{- $label := dict "springtide.dev/scheduler-partition" (toString .number) }}
{{- $_ := set $o.metadata "name" (printf "%s-%d" $o.metadata.name .number) }}
{{- $_ := set $o.metadata "labels" (merge $o.metadata.labels $label) }}
{{- $_ := set $o.spec.selector "matchLabels" (merge $o.spec.selector.matchLabels $label) }}
{{- $_ := set $o.spec.template.metadata "labels" (merge $o.spec.template.metadata.labels $label) }}
{{- range $o.spec.template.spec.topologySpreadConstraints }}
{{- $_ := set .labelSelector "matchLabels" (merge .labelSelector.matchLabels $label) }}
{{- end }}
{{- $c := first $o.spec.template.spec.containers }}
{{- $_ := set $c "args" (concat $c.args (list (printf "--partition=%d" .number) (printf "--partitions=%d" (int .of)))) }}
{{- toYaml $o }}
{{- end }}

{{/* Rules for one of several clusters: what stands at the marks that tools/chart put into every selector, aggregation and join. */}}
{{- define "springtide.clusterRules" -}}
{{- $v := .values }}
{{- $names := list }}
{{- range $v.matchers }}{{ $names = append $names (regexFind "^[a-zA-Z_][a-zA-Z0-9_]*" .) }}{{ end }}
{{- with $v.clusterLabel }}{{ $names = append $names . }}{{ end }}
{{- $labels := join ", " (uniq $names | sortAlpha) }}
{{- range $group := .object.spec.groups }}
{{- range $rule := $group.rules }}
{{- $e := $rule.expr }}
{{- if $v.matchers }}{{ $e = replace `springtide_labels="0"` (join "," $v.matchers) $e }}
{{- else }}{{ $e = $e | replace `,springtide_labels="0"` "" | replace `springtide_labels="0",` "" | replace `{springtide_labels="0"}` "" }}{{ end }}
{{- if $labels }}{{ $e = replace "springtide_labels" $labels $e }}
{{- else }}{{ $e = $e | replace ", springtide_labels" "" | replace "springtide_labels" "" }}{{ end }}
{{- $e = replace ", springtide_replicas" (ternary (printf ", %s" (join ", " $v.replicaLabels)) "" (not (empty $v.replicaLabels))) $e }}
{{- $_ := set $rule "expr" $e }}
{{- end }}
{{- end }}
{{- end }}

{{/* Dashboards that begin with this cluster's series: Grafana adds the filters to every query. */}}
{{- define "springtide.clusterDashboards" -}}
{{- $filters := list }}
{{- range .matchers }}
{{- $parts := regexFindAll `^[a-zA-Z_][a-zA-Z0-9_]*|=~|!~|!=|=|".*"$` . 3 }}
{{- $filters = append $filters (dict "key" (index $parts 0) "operator" (index $parts 1) "value" (index $parts 2 | trimPrefix "\"" | trimSuffix "\"")) }}
{{- end }}
{{- if $filters }}
{{- range $name, $text := .object.data }}
{{- $_ := set $.object.data $name (replace `"filters": []` (printf `"filters": %s` (toJson $filters)) $text) }}
{{- end }}
{{- end }}
{{- end }}
