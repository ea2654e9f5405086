{{/* Every template below is called with a dict: "root" is the chart's context, "role" the role of the pod. */}}

{{- define "drover.name" -}}
{{- printf "%s-%s" .root.Release.Name .role | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "drover.selector" -}}
app.kubernetes.io/name: drover
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "drover.labels" -}}
{{ include "drover.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "drover.metadata" -}}
name: {{ include "drover.name" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "drover.labels" . | nindent 2 }}
{{- end }}

{{/* What all pods have: a change of the settings starts them again. */}}
{{- define "drover.podMetadata" -}}
labels:
  {{- include "drover.labels" . | nindent 2 }}
annotations:
  checksum/settings: {{ .root.Values.settings | sha256sum }}
{{- end }}

{{- define "drover.pod" -}}
automountServiceAccountToken: false
# A worker that is told to stop ends what it decides, leaves its group, and is gone within 15 s.
terminationGracePeriodSeconds: 30
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "drover.selector" . | nindent 8 }}
{{- end }}

{{- define "drover.container" -}}
name: {{ .role }}
image: "{{ .repository | default .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- with .root.Values.secrets.environment }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
env:
  - {name: DROVER_CONFIG, value: /etc/drover/drover.toml}
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}

{{- define "drover.mounts" -}}
- {name: settings, mountPath: /etc/drover/drover.toml, subPath: drover.toml, readOnly: true}
{{- if .root.Values.secrets.files }}
- {name: secrets, mountPath: /etc/drover/secrets, readOnly: true}
{{- end }}
- {name: temporary, mountPath: /tmp}
{{- end }}

{{- define "drover.volumes" -}}
- name: settings
  configMap: {name: {{ .root.Release.Name }}-settings}
{{- with .root.Values.secrets.files }}
- name: secrets
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
- name: temporary
  emptyDir: {}
{{- end }}

{{/* The log is read before a process is ready; it answers /livez from its start. */}}
{{- define "drover.probes" -}}
startupProbe:
  httpGet: {{ toJson .live }}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {{ toJson .live }}
  periodSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {{ toJson .ready }}
  periodSeconds: 5
  failureThreshold: 2
{{- end }}
