// Package charts installs a chart with Helm. It needs nothing of Helm but the program.
package charts

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"interlock.invalid/tests/conformance/serving"
)

// What the chart is made of. `lookup` and the capabilities ask the server while the chart is rendered.
var chart = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: greeter\nversion: 1.2.3\nappVersion: \"1\"\n",
	"values.yaml": "text: hello\nreplicas: 1\nhasExtra: true\n",
	"crds/greetings.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: greetings, singular: greeting, kind: Greeting}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {text: {type: string}}}
`,
	"templates/all.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}, labels: {revision: "{{ .Release.Revision }}"}}
data:
  text: {{ .Values.text }}
  minor: {{ .Capabilities.KubeVersion.Minor | quote }}
  hasDeployments: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" | quote }}
  default: {{ (lookup "v1" "Namespace" "" "default").metadata.name | default "none" }}
{{- if .Values.hasExtra }}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-extra}
stringData: {password: hunter2}
{{- end }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{name: http, port: 80}, {name: https, port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: one, image: nginx:1, env: [{name: TEXT, value: {{ .Values.text }}}]}]}
---
apiVersion: example.com/v1
kind: Greeting
metadata: {name: {{ .Release.Name }}}
spec: {text: {{ .Values.text }}}
`,
	"templates/hook.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-before
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: "{{ .Release.Revision }}"}
`,
}

// One Helm and one server.
type given struct {
	*testing.T
	helm, home string
	server     *serving.Server
}

// Runs a program that must succeed, and returns what it prints.
func (g given) run(program string, words ...string) string {
	g.Helper()
	out, said, err := g.tried(program, words...)
	if err != nil {
		g.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(words, " "), err, out, said)
	}
	return strings.TrimSpace(out)
}

func (g given) tried(program string, words ...string) (string, string, error) {
	command := exec.CommandContext(g.Context(), program, words...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "KUBECONFIG=" + g.server.Kubeconfig}
	command.Dir = g.home
	var out, said strings.Builder
	command.Stdout, command.Stderr = &out, &said
	err := command.Run()
	return out.String(), said.String(), err
}

func (g given) is(what, found, expected string) {
	g.Helper()
	if found != expected {
		g.Errorf("%s: found %q, expected %q", what, found, expected)
	}
}

// What is read from an object, with kubectl.
func (g given) read(object, path string) string {
	g.Helper()
	return g.run("kubectl", "-n", "apps", "get", object, "-o", "jsonpath="+path)
}

// The revisions of the release, each with its status.
func (g given) history() string {
	g.Helper()
	var revisions []struct {
		Revision int
		Status   string
	}
	if err := json.Unmarshal([]byte(g.run(g.helm, "history", "demo", "-n", "apps", "-o", "json")), &revisions); err != nil {
		g.Fatal(err)
	}
	var texts []string
	for _, one := range revisions {
		texts = append(texts, fmt.Sprint(one.Revision, " ", one.Status))
	}
	return strings.Join(texts, ", ")
}

func write(t *testing.T, folder string) {
	t.Helper()
	bytes := make([]byte, 300*1024)
	_, _ = rand.Read(bytes)
	// Releases are stored with all files of their chart: this one does not get smaller by compression.
	chart["files/large.txt"] = base64.StdEncoding.EncodeToString(bytes)
	for name, text := range chart {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAChartIsInstalledUpgradedRolledBackAndUninstalled(t *testing.T) {
	helms := filepath.SplitList(os.Getenv("INTERLOCK_HELM"))
	if len(helms) == 0 {
		t.Fatal("INTERLOCK_HELM names no helm: run `cargo xtask test-real --only with_helm`")
	}
	for _, helm := range helms {
		t.Run(filepath.Base(helm), func(t *testing.T) {
			server, err := serving.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Stop()
			g := given{T: t, helm: helm, home: t.TempDir(), server: server}
			write(t, filepath.Join(g.home, "greeter"))
			g.lifeOfARelease()
		})
	}
}

func (g given) lifeOfARelease() {
	g.run(g.helm, "install", "demo", "greeter", "-n", "apps", "--create-namespace")
	g.is("the text", g.read("configmap/demo", "{.data.text}"), "hello")
	g.is("the minor version", g.read("configmap/demo", "{.data.minor}"), "35")
	g.is("what is served", g.read("configmap/demo", "{.data.hasDeployments}"), "true")
	g.is("what was looked up", g.read("configmap/demo", "{.data.default}"), "default")
	g.is("the custom object", g.read("greetings/demo", "{.spec.text}"), "hello")
	g.is("the hook", g.read("configmap/demo-before", "{.data.revision}"), "1")
	g.is("the ports", g.read("service/demo", "{.spec.ports[*].port}"), "80 443")
	_, said, err := g.tried(g.helm, "install", "demo", "greeter", "-n", "apps")
	if err == nil || !strings.Contains(said, "cannot re-use a name that is still in use") &&
		!strings.Contains(said, "cannot reuse a name that is still in use") {
		g.Errorf("a second release of the name: %v %s", err, said)
	}

	// Somebody else's field survives an upgrade.
	g.run("kubectl", "-n", "apps", "label", "deployment/demo", "team=blue")
	g.run(g.helm, "upgrade", "demo", "greeter", "-n", "apps", "--set", "text=bye,replicas=3,hasExtra=false")
	g.is("the text", g.read("configmap/demo", "{.data.text}"), "bye")
	g.is("the deployment", g.read("deployment/demo", "{.spec.replicas} {.metadata.labels.team} {.spec.template.spec.containers[0].env[0].value}"), "3 blue bye")
	g.is("the custom object", g.read("greetings/demo", "{.spec.text}"), "bye")
	g.is("the hook", g.read("configmap/demo-before", "{.data.revision}"), "2")
	g.is("what the chart has no longer", g.run("kubectl", "-n", "apps", "get", "secret", "demo-extra", "--ignore-not-found", "-o", "name"), "")
	g.is("the history", g.history(), "1 superseded, 2 deployed")

	_, said, err = g.tried(g.helm, "upgrade", "demo", "greeter", "-n", "apps", "--set", "replicas=-1")
	if err == nil || !strings.Contains(said, "replicas") {
		g.Errorf("an upgrade that the server refuses: %v %s", err, said)
	}
	g.is("the history", g.history(), "1 superseded, 2 deployed, 3 failed")

	g.run(g.helm, "rollback", "demo", "1", "-n", "apps")
	g.is("the text", g.read("configmap/demo", "{.data.text}"), "hello")
	g.is("the secret", g.read("secret/demo-extra", "{.data.password}"), "aHVudGVyMg==")
	g.is("the deployment", g.read("deployment/demo", "{.spec.replicas}"), "1")
	g.is("the history", g.history(), "1 superseded, 2 superseded, 3 failed, 4 deployed")

	var releases []struct{ Name, Namespace, Revision, Status, Chart string }
	if err := json.Unmarshal([]byte(g.run(g.helm, "list", "--all-namespaces", "-o", "json")), &releases); err != nil {
		g.Fatal(err)
	}
	g.is("the releases", fmt.Sprint(releases), "[{demo apps 4 deployed greeter-1.2.3}]")
	if text := g.run(g.helm, "get", "manifest", "demo", "-n", "apps", "--revision", "2"); !strings.Contains(text, "text: bye") {
		g.Errorf("the manifest of the second revision: %s", text)
	}

	g.run(g.helm, "uninstall", "demo", "-n", "apps")
	g.is("the releases", g.run(g.helm, "list", "-n", "apps", "-q"), "")
	left := g.run("kubectl", "-n", "apps", "get", "deployments,services,secrets,greetings.example.com,serviceaccounts,configmaps", "-o", "name")
	// Helm leaves hooks and definitions where they are.
	g.is("what is left", left, "serviceaccount/default\nconfigmap/demo-before\nconfigmap/kube-root-ca.crt")
	g.run("kubectl", "get", "crd", "greetings.example.com")
}
