package clients

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
)

func field(object *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return value
}

func TestACustomKindWorksWithTheDynamicClient(t *testing.T) {
	g := in(t)
	resource := g.definition("widgets", "Widget")
	widgets := g.dynamic.Resource(resource).Namespace(g.namespace)
	made, err := widgets.Create(t.Context(), custom(resource, "Widget", "one", map[string]any{"count": int64(1)}), metav1.CreateOptions{})
	g.ok(err)
	g.is("the default", field(made, "spec", "text"), "hello")
	_, err = widgets.Create(t.Context(), custom(resource, "Widget", "two", map[string]any{"count": int64(-1)}), metav1.CreateOptions{})
	g.is("a value that the schema refuses", apierrors.IsInvalid(err), true)

	patched, err := widgets.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"spec":{"text":"bye","surplus":1}}`), metav1.PatchOptions{})
	g.ok(err)
	g.is("a field of the schema", field(patched, "spec", "text"), "bye")
	g.is("a field that is none", field(patched, "spec", "surplus"), nil)
	_, err = widgets.Patch(t.Context(), "one", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	g.is("a strategic merge of a custom kind", apierrors.IsUnsupportedMediaType(err), true)

	g.ok(unstructured.SetNestedField(patched.Object, int64(9), "status", "count"))
	written, err := widgets.UpdateStatus(t.Context(), patched, metav1.UpdateOptions{})
	g.ok(err)
	g.is("the status", field(written, "status", "count"), 9)

	applied, err := widgets.Apply(t.Context(), "two", custom(resource, "Widget", "two", map[string]any{"count": int64(2)}),
		metav1.ApplyOptions{FieldManager: "tester"})
	g.ok(err)
	g.is("what was applied", field(applied, "spec", "count"), 2)
	_, err = widgets.Apply(t.Context(), "two", custom(resource, "Widget", "two", map[string]any{"count": int64(3)}),
		metav1.ApplyOptions{FieldManager: "other"})
	g.is("a field of somebody else", apierrors.IsConflict(err), true)

	list, err := widgets.List(t.Context(), metav1.ListOptions{Limit: 1})
	g.ok(err)
	g.is("the kind of the list", list.GetKind(), "WidgetList")
	g.is("a page", len(list.Items), 1)
	g.is("the kind of an item", list.Items[0].GetKind(), "Widget")
	rest, err := widgets.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: list.GetContinue()})
	g.ok(err)
	g.is("the next page", rest.Items[0].GetName(), "two")

	g.ok(widgets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	list, err = widgets.List(t.Context(), metav1.ListOptions{})
	g.ok(err)
	g.is("what is left", len(list.Items), 0)
}

func TestDynamicAndMetadataInformersShowTheSame(t *testing.T) {
	g := in(t)
	resource := g.definition("gadgets", "Gadget")
	gadgets := g.dynamic.Resource(resource).Namespace(g.namespace)
	whole := dynamicinformer.NewFilteredDynamicSharedInformerFactory(g.dynamic, time.Minute, g.namespace, nil)
	metadataClient, err := metadata.NewForConfig(config)
	g.ok(err)
	parts := metadatainformer.NewFilteredSharedInformerFactory(metadataClient, time.Minute, g.namespace, nil)
	names := make(chan string, 10)
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"whole": whole.ForResource(resource).Informer(), "part": parts.ForResource(resource).Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
			switch object := object.(type) {
			case *unstructured.Unstructured:
				names <- fmt.Sprint(kind, " ", object.GetName(), " ", field(object, "spec", "text"))
			case *metav1.PartialObjectMetadata:
				names <- fmt.Sprint(kind, " ", object.GetName(), " ", object.Namespace == g.namespace)
			}
		}})
		g.ok(err)
	}
	whole.Start(t.Context().Done())
	parts.Start(t.Context().Done())
	whole.WaitForCacheSync(t.Context().Done())
	parts.WaitForCacheSync(t.Context().Done())
	_, err = gadgets.Create(t.Context(), custom(resource, "Gadget", "one", map[string]any{}), metav1.CreateOptions{})
	g.ok(err)
	seen := map[string]bool{next(g, "one informer", names): true, next(g, "the other informer", names): true}
	g.is("what they show", seen, map[string]bool{"part one true": true, "whole one hello": true})

	patched, err := metadataClient.Resource(resource).Namespace(g.namespace).Patch(t.Context(), "one",
		types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	g.ok(err)
	g.is("the labels", patched.Labels, map[string]string{"a": "b"})
	g.ok(metadataClient.Resource(resource).Namespace(g.namespace).DeleteCollection(t.Context(),
		metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "a=b"}))
	_, err = gadgets.Get(t.Context(), "one", metav1.GetOptions{})
	g.is("it is gone", apierrors.IsNotFound(err), true)
}

func TestDiscoveryNamesWhatIsServed(t *testing.T) {
	g := in(t)
	resource := g.definition("sprockets", "Sprocket")
	client := g.client.Discovery()
	version, err := client.ServerVersion()
	g.ok(err)
	g.is("the version", version.Major+"."+version.Minor, "1.35")
	for _, form := range []discovery.DiscoveryInterface{client, client.WithLegacy()} {
		groups, resources, err := form.ServerGroupsAndResources()
		g.ok(err)
		found := map[string]bool{}
		for _, group := range groups {
			found[group.Name] = true
		}
		g.is("groups", found[""] && found["apps"] && found[resource.Group], true)
		for _, list := range resources {
			for _, one := range list.APIResources {
				found[list.GroupVersion+"/"+one.Name+" "+one.Kind] = true
			}
		}
		for _, wanted := range []string{
			"v1/pods/status Pod", "apps/v1/deployments/scale Scale", resource.GroupVersion().String() + "/sprockets Sprocket",
			resource.GroupVersion().String() + "/sprockets/scale Scale",
		} {
			g.is(wanted, found[wanted], true)
		}
	}
	preferred, err := client.ServerPreferredNamespacedResources()
	g.ok(err)
	g.is("preferred resources", len(preferred) > 5, true)

	mapper := restmapper.NewShortcutExpander(
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), memory.NewMemCacheClient(client), nil)
	mapped, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "sp"})
	g.ok(err)
	g.is("the resource of a short name", mapped, resource)
	kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: "deploy"})
	g.ok(err)
	g.is("the kind of a short name", kind.Kind, "Deployment")

	document, err := client.OpenAPISchema()
	g.ok(err)
	g.is("definitions of OpenAPI v2", len(document.GetDefinitions().GetAdditionalProperties()) > 300, true)
	paths, err := client.OpenAPIV3().Paths()
	g.ok(err)
	for _, path := range []string{"api/v1", "apis/apps/v1", "apis/" + resource.GroupVersion().String()} {
		one, isThere := paths[path]
		if !isThere {
			t.Errorf("OpenAPI v3 has no %s", path)
			continue
		}
		for _, form := range []string{"application/json", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"} {
			text, err := one.Schema(form)
			// client-go asks for protobuf only where kubectl does not, and reads JSON everywhere.
			if form == "application/json" {
				g.ok(err)
				g.is(path+" is not empty", len(text) > 1000, true)
			}
		}
	}
}

func TestTheScaleClientFindsTheScaleOfAnyKind(t *testing.T) {
	g := in(t)
	resource := g.definition("cranks", "Crank")
	_, err := g.dynamic.Resource(resource).Namespace(g.namespace).Create(t.Context(),
		custom(resource, "Crank", "one", map[string]any{"count": int64(3)}), metav1.CreateOptions{})
	g.ok(err)
	_, err = g.client.AppsV1().Deployments(g.namespace).Create(t.Context(), deployment("one"), metav1.CreateOptions{})
	g.ok(err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(g.client.Discovery()))
	client, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(g.client.Discovery()))
	g.ok(err)
	for of, replicas := range map[schema.GroupResource]int32{resource.GroupResource(): 3, {Group: "apps", Resource: "deployments"}: 2} {
		found, err := client.Scales(g.namespace).Get(t.Context(), of, "one", metav1.GetOptions{})
		g.ok(err)
		g.is("replicas of "+of.String(), found.Spec.Replicas, replicas)
		found.Spec.Replicas = 11
		changed, err := client.Scales(g.namespace).Update(t.Context(), of, found, metav1.UpdateOptions{})
		g.ok(err)
		g.is("replicas of "+of.String(), changed.Spec.Replicas, 11)
	}
}
