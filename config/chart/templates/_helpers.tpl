{{- define "warren.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "warren.image" -}}
{{ .Values.image.repository }}{{ hasPrefix "sha256:" (include "warren.tag" .) | ternary "@" ":" }}{{ include "warren.tag" . }}
{{- end }}

{{- /* The configuration file: that of the components, and over it controller.config. */}}
{{- define "warren.config" -}}
{{- $config := dict "apiVersion" "config.tenancy.warren.dev/v1alpha1" "kind" "OperatorConfiguration" }}
{{- range $component, $file := dict "openAccess" "open-access" "hardened" "hardened" }}
{{- if index $.Values.components $component }}
{{- $config = mergeOverwrite $config ($.Files.Get (printf "config/%s.yaml" $file) | fromYaml) }}
{{- end }}
{{- end }}
{{- mergeOverwrite $config (deepCopy .Values.controller.config) | toYaml }}
{{- end }}

{{- define "warren.billingDriver" -}}
{{ dig "billing" "driver" "none" .Values.controller.config }}
{{- end }}

{{- /* The fields of a pod that say where it runs: a list of the values of its Deployment, and the root. */}}
{{- define "warren.placement" -}}
{{- $pod := index . 0 }}
{{- $root := index . 1 }}
{{- $fields := dict }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" }}
{{- with index $pod $field }}
{{- $_ := set $fields $field . }}
{{- end }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
{{- $_ := set $fields "imagePullSecrets" . }}
{{- end }}
{{- if $pod.hostNetwork }}
{{- $fields = merge $fields (dict "hostNetwork" true "dnsPolicy" "ClusterFirstWithHostNet") }}
{{- end }}
{{- with $fields }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* A pod of a hook, which runs one of the image's programs once: a dict of root, name, command. */}}
{{- define "warren.hookPod" -}}
metadata:
  labels: {{ merge (dict "app.kubernetes.io/name" "warren" "app.kubernetes.io/component" .name) .root.Values.commonLabels | toYaml | nindent 4 }}
  {{- with .root.Values.commonAnnotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: warren-{{ .name }}
  restartPolicy: Never
  {{- with include "warren.placement" (list (pick .root.Values.controller "nodeSelector" "tolerations") .root) }}{{ . | nindent 2 }}{{ end }}
  securityContext: {{ toYaml .root.Values.controller.podSecurityContext | nindent 4 }}
  containers:
  - name: {{ .name }}
    image: {{ include "warren.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: {{ toJson .command }}
    terminationMessagePolicy: FallbackToLogsOnError
    securityContext: {{ toYaml .root.Values.controller.securityContext | nindent 6 }}
    resources: {{ toYaml .root.Values.hookResources | nindent 6 }}
{{- end }}

{{- /* Who runs a hook, and the way to the API server: a dict of root, name, hook, rules. All of it goes when the hook has ended. */}}
{{- define "warren.hookAccount" -}}
{{- $annotations := dict "helm.sh/hook" .hook "helm.sh/hook-weight" "-1" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" }}
{{- $metadata := dict "name" (printf "warren-%s" .name) "namespace" "warren-system" "annotations" (merge $annotations .root.Values.commonAnnotations) "labels" (merge (dict "app.kubernetes.io/name" "warren") .root.Values.commonLabels) }}
{{- $clusterMetadata := omit $metadata "namespace" }}
apiVersion: v1
kind: ServiceAccount
metadata: {{ toYaml $metadata | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{ toYaml $clusterMetadata | nindent 2 }}
rules: {{ .rules | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{ toYaml $clusterMetadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: warren-{{ .name }}
subjects:
- kind: ServiceAccount
  name: warren-{{ .name }}
  namespace: warren-system
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{ toYaml $metadata | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: warren
      app.kubernetes.io/component: {{ .name }}
  policyTypes: [Egress]
  egress:
  - ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
    - {port: 443, protocol: TCP}
    - {port: 6443, protocol: TCP}
    - {port: 8443, protocol: TCP}
    - {port: 16443, protocol: TCP}
{{- end }}
