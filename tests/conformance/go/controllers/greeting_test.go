package controllers

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "greetings.example.com", Version: "v1"}

// A custom kind as a project with kubebuilder has it.
type greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   greetingSpec   `json:"spec,omitempty"`
	Status greetingStatus `json:"status,omitempty"`
}

type greetingSpec struct {
	Text string `json:"text,omitempty"`
	To   string `json:"to,omitempty"`
}

type greetingStatus struct {
	Said       string             `json:"said,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type greetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []greeting `json:"items"`
}

func (g *greeting) DeepCopyObject() runtime.Object {
	copied := *g
	copied.ObjectMeta = *g.ObjectMeta.DeepCopy()
	copied.Status.Conditions = append([]metav1.Condition(nil), g.Status.Conditions...)
	return &copied
}

func (l *greetingList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for _, item := range l.Items {
		copied.Items = append(copied.Items, *item.DeepCopyObject().(*greeting))
	}
	return &copied
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(groupVersion.WithKind("Greeting"), &greeting{})
	scheme.AddKnownTypeWithName(groupVersion.WithKind("GreetingList"), &greetingList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

func text() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "string"}
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	condition := object(map[string]apiextensionsv1.JSONSchemaProps{
		"type": text(), "status": text(), "reason": text(), "message": text(),
		"lastTransitionTime": {Type: "string", Format: "date-time"},
		"observedGeneration": {Type: "integer", Format: "int64"},
	})
	condition.Required = []string{"type", "status"}
	mapType := "map"
	whole := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{"text": text(), "to": text()}),
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{
			"said": text(),
			"conditions": {
				Type: "array", XListType: &mapType, XListMapKeys: []string{"type"},
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
			},
		}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "greetings." + groupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: groupVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "greetings", Kind: "Greeting", ListKind: "GreetingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: groupVersion.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
