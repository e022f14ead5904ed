package clients

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

func (t given) container(image string) *appsapply.DeploymentApplyConfiguration {
	match := map[string]string{"app": "app"}
	return appsapply.Deployment("app", t.namespace).WithLabels(match).WithSpec(
		appsapply.DeploymentSpec().WithReplicas(1).
			WithSelector(metaapply.LabelSelector().WithMatchLabels(match)).
			WithTemplate(coreapply.PodTemplateSpec().WithLabels(match).WithSpec(
				coreapply.PodSpec().WithContainers(coreapply.Container().WithName("one").WithImage(image)))))
}

func TestFieldsBelongToWhoAppliedThem(t *testing.T) {
	each(t, func(t given) {
		deployments := t.client.AppsV1().Deployments(t.namespace)
		first := metav1.ApplyOptions{FieldManager: "first"}
		applied, err := deployments.Apply(t.Context(), t.container("nginx:1"), first)
		t.ok(err)
		version := applied.ResourceVersion
		applied, err = deployments.Apply(t.Context(), t.container("nginx:1"), first)
		t.ok(err)
		t.is("the version after the same once more", applied.ResourceVersion, version)

		second := metav1.ApplyOptions{FieldManager: "second"}
		_, err = deployments.Apply(t.Context(), t.container("nginx:2"), second)
		t.is("a field of somebody else is a conflict", apierrors.IsConflict(err), true)
		if status, isStatus := err.(apierrors.APIStatus); !isStatus || len(status.Status().Details.Causes) != 1 ||
			status.Status().Details.Causes[0].Field != `.spec.template.spec.containers[name="one"].image` {
			t.Errorf("the conflict does not name the field: %v", err)
		}
		second.Force = true
		applied, err = deployments.Apply(t.Context(), t.container("nginx:2"), second)
		t.ok(err)
		t.is("the image", applied.Spec.Template.Spec.Containers[0].Image, "nginx:2")

		held, err := appsapply.ExtractDeployment(applied, "second")
		t.ok(err)
		t.is("what the second one holds", *held.Spec.Template.Spec.Containers[0].Image, "nginx:2")
		held, err = appsapply.ExtractDeployment(applied, "first")
		t.ok(err)
		if container := held.Spec.Template.Spec.Containers[0]; container.Image != nil {
			t.Errorf("the first one still holds the image: %v", *container.Image)
		}
		status := appsapply.Deployment("app", t.namespace).WithStatus(appsapply.DeploymentStatus().WithReplicas(3))
		applied, err = deployments.ApplyStatus(t.Context(), status, first)
		t.ok(err)
		t.is("the status", applied.Status.Replicas, 3)
		held, err = appsapply.ExtractDeploymentStatus(applied, "first")
		t.ok(err)
		t.is("what it holds of the status", *held.Status.Replicas, 3)
	})
}

func TestWhatIsNoLongerAppliedIsRemoved(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		options := metav1.ApplyOptions{FieldManager: "first"}
		both := coreapply.ConfigMap("one", t.namespace).WithData(map[string]string{"a": "1", "b": "2"})
		_, err := maps.Apply(t.Context(), both, options)
		t.ok(err)
		_, err = maps.Apply(t.Context(), coreapply.ConfigMap("one", t.namespace).WithData(map[string]string{"c": "3"}),
			metav1.ApplyOptions{FieldManager: "second"})
		t.ok(err)
		applied, err := maps.Apply(t.Context(), coreapply.ConfigMap("one", t.namespace).WithData(map[string]string{"a": "1"}), options)
		t.ok(err)
		t.is("the data", applied.Data, map[string]string{"a": "1", "c": "3"})
		_, err = maps.Apply(t.Context(), coreapply.ConfigMap("one", t.namespace).WithUID("another"), options)
		t.is("the uid of another object", apierrors.IsConflict(err), true)
	})
}
