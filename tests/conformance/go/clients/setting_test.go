// Package clients drives the server with client-go.
package clients

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"interlock.invalid/tests/conformance/serving"
)

// One server for all tests of the package that do not restart it; each has a namespace of its own.
var config *rest.Config

func TestMain(m *testing.M) {
	os.Exit(func() int {
		server, err := serving.Start()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Stop()
		if config, err = configOf(server); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// The administrator of a server, whom client-go does not slow down.
func configOf(server *serving.Server) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1
	return config, nil
}

// What a test is given.
type given struct {
	*testing.T
	client    *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
	namespace string
}

// A namespace of the test's own, and clients that speak JSON.
func in(t *testing.T) given {
	t.Helper()
	return with(t, config)
}

// The same twice: with JSON bodies and answers, and with protobuf.
func each(t *testing.T, test func(t given)) {
	for _, form := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(strings.TrimPrefix(form, "application/"), func(t *testing.T) {
			speaks := rest.CopyConfig(config)
			speaks.ContentType = form
			speaks.AcceptContentTypes = form
			if form == runtime.ContentTypeProtobuf {
				speaks.AcceptContentTypes = form + "," + runtime.ContentTypeJSON
			}
			test(with(t, speaks))
		})
	}
}

func with(t *testing.T, config *rest.Config) given {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	namespace, err = client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return given{T: t, client: client, dynamic: untyped, namespace: namespace.Name}
}

// Ends the test unless there is no error.
func (t given) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Says what differs.
func (t given) is(what string, found, expected any) {
	t.Helper()
	if fmt.Sprint(found) != fmt.Sprint(expected) {
		t.Errorf("%s: found %v, expected %v", what, found, expected)
	}
}

func (t given) eventually(what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// Receives the next value, or ends the test.
func next[T any](t given, what string, from <-chan T) T {
	t.Helper()
	select {
	case value, isOpen := <-from:
		if !isOpen {
			t.Fatalf("the channel was closed: %s", what)
		}
		return value
	case <-time.After(time.Minute):
		t.Fatalf("not within a minute: %s", what)
	}
	panic("unreachable")
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

// A custom kind for one test. It has a status, and keeps unknown fields out.
func (t given) definition(plural, kind string) schema.GroupVersionResource {
	t.Helper()
	group := plural + ".example.com"
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{
				"plural": plural, "kind": kind, "singular": strings.ToLower(kind), "shortNames": []any{plural[:2]},
			},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale": map[string]any{
						"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count",
					},
				},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{"type": "object", "properties": map[string]any{
							"text":  map[string]any{"type": "string", "default": "hello"},
							"count": map[string]any{"type": "integer", "minimum": int64(0)},
						}},
						"status": map[string]any{"type": "object", "properties": map[string]any{
							"count": map[string]any{"type": "integer"},
						}},
					},
				}},
			}},
		},
	}}
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	_, err := t.dynamic.Resource(definitions).Create(t.Context(), object, metav1.CreateOptions{})
	t.ok(err)
	t.eventually("the kind is served", func() bool {
		list, err := t.client.Discovery().ServerResourcesForGroupVersion(group + "/v1")
		return err == nil && len(list.APIResources) > 0
	})
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
}

func custom(resource schema.GroupVersionResource, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}
