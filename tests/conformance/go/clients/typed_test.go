package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

func deployment(name string) *appsv1.Deployment {
	replicas := int32(2)
	match := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: match},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: match},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: match},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "nginx:1"}}},
			},
		},
	}
}

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "nginx:1"}}},
	}
}

func TestAnObjectIsMadeReadChangedAndDeleted(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		made, err := maps.Create(t.Context(), configMap("one", map[string]string{"a": "1"}), metav1.CreateOptions{})
		t.ok(err)
		if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
			t.Errorf("it has no metadata: %+v", made.ObjectMeta)
		}
		read, err := maps.Get(t.Context(), "one", metav1.GetOptions{})
		t.ok(err)
		t.is("the object", read, made)

		read.Data["b"] = "2"
		read.BinaryData = map[string][]byte{"c": {0, 255}}
		changed, err := maps.Update(t.Context(), read, metav1.UpdateOptions{FieldManager: "tester"})
		t.ok(err)
		t.is("the data", changed.Data, map[string]string{"a": "1", "b": "2"})
		t.is("the bytes", changed.BinaryData["c"], []byte{0, 255})
		_, err = maps.Update(t.Context(), made, metav1.UpdateOptions{})
		t.is("a stale write is a conflict", apierrors.IsConflict(err), true)

		t.ok(maps.Delete(t.Context(), "one", *metav1.NewRVDeletionPrecondition(changed.ResourceVersion)))
		_, err = maps.Get(t.Context(), "one", metav1.GetOptions{})
		t.is("it is gone", apierrors.IsNotFound(err), true)
	})
}

func TestRefusalsAreErrorsThatClientsKnow(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		_, err := maps.Create(t.Context(), configMap("one", nil), metav1.CreateOptions{})
		t.ok(err)
		_, err = maps.Create(t.Context(), configMap("one", nil), metav1.CreateOptions{})
		t.is("a second one of the name", apierrors.IsAlreadyExists(err), true)
		_, err = maps.Create(t.Context(), configMap("A_b", nil), metav1.CreateOptions{})
		t.is("a bad name", apierrors.IsInvalid(err), true)
		status, isStatus := err.(apierrors.APIStatus)
		if !isStatus || len(status.Status().Details.Causes) == 0 || status.Status().Details.Causes[0].Field != "metadata.name" {
			t.Errorf("the refusal names no field: %v", err)
		}
		nowhere := t.client.CoreV1().ConfigMaps("nowhere")
		_, err = nowhere.Create(t.Context(), configMap("one", nil), metav1.CreateOptions{})
		t.is("no such namespace", apierrors.IsNotFound(err), true)
		err = maps.Delete(t.Context(), "one", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
		t.is("the uid of another object", apierrors.IsConflict(err), true)
		wrong := deployment("wrong")
		wrong.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		_, err = t.client.AppsV1().Deployments(t.namespace).Create(t.Context(), wrong, metav1.CreateOptions{})
		t.is("a selector that does not match", apierrors.IsInvalid(err), true)
	})
}

func TestEveryFormOfPatchWorks(t *testing.T) {
	each(t, func(t given) {
		deployments := t.client.AppsV1().Deployments(t.namespace)
		_, err := deployments.Create(t.Context(), deployment("app"), metav1.CreateOptions{})
		t.ok(err)
		patch := func(form types.PatchType, body string, subresources ...string) *appsv1.Deployment {
			patched, err := deployments.Patch(t.Context(), "app", form, []byte(body), metav1.PatchOptions{}, subresources...)
			t.ok(err)
			return patched
		}
		patched := patch(types.StrategicMergePatchType,
			`{"spec":{"template":{"spec":{"containers":[{"name":"two","image":"nginx:2"}]}}}}`)
		t.is("containers after a strategic merge", len(patched.Spec.Template.Spec.Containers), 2)
		patched = patch(types.MergePatchType, `{"metadata":{"labels":{"extra":"yes"}},"spec":{"replicas":5}}`)
		t.is("replicas after a merge", *patched.Spec.Replicas, 5)
		patched = patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":5},{"op":"remove","path":"/metadata/labels/extra"}]`)
		t.is("labels after a JSON patch", patched.Labels, map[string]string{"app": "app"})
		_, err = deployments.Patch(t.Context(), "app", types.JSONPatchType,
			[]byte(`[{"op":"test","path":"/spec/replicas","value":6}]`), metav1.PatchOptions{})
		t.is("a test that fails", apierrors.IsInvalid(err), true)
		generation := patched.Generation
		patched = patch(types.MergePatchType, `{"status":{"replicas":1,"observedGeneration":1}}`, "status")
		t.is("the status", patched.Status.Replicas, 1)
		t.is("the generation", patched.Generation, generation)
	})
}

func TestStatusAndScaleAreWrittenByThemselves(t *testing.T) {
	each(t, func(t given) {
		deployments := t.client.AppsV1().Deployments(t.namespace)
		made, err := deployments.Create(t.Context(), deployment("app"), metav1.CreateOptions{})
		t.ok(err)
		made.Status.Replicas = 2
		made.Spec.Replicas = nil
		written, err := deployments.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		t.ok(err)
		t.is("the status", written.Status.Replicas, 2)
		t.is("the spec", *written.Spec.Replicas, 2)
		scale, err := deployments.GetScale(t.Context(), "app", metav1.GetOptions{})
		t.ok(err)
		t.is("the selector of the scale", scale.Status.Selector, "app=app")
		scale.Spec.Replicas = 7
		scale, err = deployments.UpdateScale(t.Context(), "app", scale, metav1.UpdateOptions{})
		t.ok(err)
		t.is("the scale", scale.Spec.Replicas, 7)
		read, err := deployments.Get(t.Context(), "app", metav1.GetOptions{})
		t.ok(err)
		t.is("the spec", *read.Spec.Replicas, 7)
		_, err = deployments.UpdateScale(t.Context(), "none", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "none"}}, metav1.UpdateOptions{})
		t.is("the scale of nothing", apierrors.IsNotFound(err), true)
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		dry := []string{metav1.DryRunAll}
		_, err := maps.Create(t.Context(), configMap("one", nil), metav1.CreateOptions{DryRun: dry})
		t.ok(err)
		_, err = maps.Get(t.Context(), "one", metav1.GetOptions{})
		t.is("it was not made", apierrors.IsNotFound(err), true)
		_, err = maps.Create(t.Context(), configMap("one", nil), metav1.CreateOptions{})
		t.ok(err)
		t.ok(maps.Delete(t.Context(), "one", metav1.DeleteOptions{DryRun: dry}))
		t.ok(maps.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{}))
		_, err = maps.Get(t.Context(), "one", metav1.GetOptions{})
		t.ok(err)
	})
}

func (t given) names() string {
	t.Helper()
	list, err := t.client.CoreV1().ConfigMaps(t.namespace).List(t.Context(), metav1.ListOptions{})
	t.ok(err)
	var names []string
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			names = append(names, item.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestACollectionIsDeletedAsFarAsItWasSelected(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		for number := range 6 {
			one := configMap(fmt.Sprintf("m%d", number), nil)
			one.Labels = map[string]string{"is": map[bool]string{true: "even", false: "odd"}[number%2 == 0]}
			_, err := maps.Create(t.Context(), one, metav1.CreateOptions{})
			t.ok(err)
		}
		t.ok(maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=m0"}))
		t.is("after a field selector", t.names(), "m1 m2 m3 m4 m5")
		t.ok(maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "is=odd", Limit: 2}))
		t.is("after a page of two", t.names(), "m2 m4 m5")
		background := metav1.DeletePropagationBackground
		options := metav1.DeleteOptions{PropagationPolicy: &background}
		t.ok(maps.DeleteCollection(t.Context(), options, metav1.ListOptions{LabelSelector: "is in (odd,none)"}))
		t.is("after a label selector", t.names(), "m2 m4")
		other := t.client.CoreV1().ConfigMaps(metav1.NamespaceAll)
		err := other.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "is=even"})
		t.is("in all namespaces at once it is not allowed", apierrors.IsMethodNotSupported(err), true)
		t.is("after a refusal", t.names(), "m2 m4")
		wrong := metav1.DeletionPropagation("Sideways")
		err = maps.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &wrong}, metav1.ListOptions{})
		t.is("a policy that there is not", apierrors.IsInvalid(err), true)
		t.is("after another refusal", t.names(), "m2 m4")
	})
}

func TestDependentsOfACollectionAreDeletedOrOrphanedAsTheOptionsSay(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		secrets := t.client.CoreV1().Secrets(t.namespace)
		for _, policy := range []metav1.DeletionPropagation{
			metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
		} {
			name := strings.ToLower(string(policy))
			owner := configMap(name, nil)
			owner.Labels = map[string]string{"policy": name}
			owner, err := maps.Create(t.Context(), owner, metav1.CreateOptions{})
			t.ok(err)
			blocks := true
			dependent := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID, BlockOwnerDeletion: &blocks},
			}}}
			_, err = secrets.Create(t.Context(), dependent, metav1.CreateOptions{})
			t.ok(err)
			options := metav1.DeleteOptions{PropagationPolicy: &policy}
			t.ok(maps.DeleteCollection(t.Context(), options, metav1.ListOptions{LabelSelector: "policy=" + name}))
			t.eventually("the owner is gone", func() bool {
				_, err := maps.Get(t.Context(), name, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
			if policy == metav1.DeletePropagationOrphan {
				left, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
				t.ok(err)
				t.is("the owners of an orphan", len(left.OwnerReferences), 0)
				continue
			}
			t.eventually("the dependent is gone", func() bool {
				_, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		}
	})
}

func TestListsAreReadByPages(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		for number := range 25 {
			one := configMap(fmt.Sprintf("m%02d", number), nil)
			one.Labels = map[string]string{"paged": "yes"}
			_, err := maps.Create(t.Context(), one, metav1.CreateOptions{})
			t.ok(err)
		}
		var names, versions, left []string
		options := metav1.ListOptions{Limit: 10, LabelSelector: "paged=yes"}
		for {
			page, err := maps.List(t.Context(), options)
			t.ok(err)
			for _, item := range page.Items {
				names = append(names, item.Name)
			}
			versions = append(versions, page.ResourceVersion)
			remaining := "?"
			if page.RemainingItemCount != nil {
				remaining = fmt.Sprint(*page.RemainingItemCount)
			}
			left = append(left, remaining)
			if page.Continue == "" {
				break
			}
			options.Continue = page.Continue
			// What comes between two pages is not part of the list.
			_, err = maps.Create(t.Context(), configMap(fmt.Sprintf("m99-%d", len(left)), nil), metav1.CreateOptions{})
			t.ok(err)
		}
		t.is("the number of names", len(names), 25)
		t.is("the last name", names[24], "m24")
		t.is("all pages are of one version", versions[0] == versions[1] && versions[1] == versions[2], true)
		// With a selector the server does not say how many are left.
		t.is("what is left", left, "[? ? ?]")
		page, err := maps.List(t.Context(), metav1.ListOptions{Limit: 20})
		t.ok(err)
		t.is("what is left of all", page.RemainingItemCount != nil && *page.RemainingItemCount == 8, true)
		_, err = maps.List(t.Context(), metav1.ListOptions{Limit: 10, Continue: "nonsense"})
		t.is("a token that is none", apierrors.IsBadRequest(err), true)
	})
}

func TestConcurrentWritersCountTogether(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		_, err := maps.Create(t.Context(), configMap("counter", nil), metav1.CreateOptions{})
		t.ok(err)
		var writers sync.WaitGroup
		for number := range 20 {
			writers.Go(func() {
				often := wait.Backoff{Steps: 10000, Duration: time.Millisecond, Factor: 1, Jitter: 2}
				err := retry.RetryOnConflict(often, func() error {
					counter, err := maps.Get(t.Context(), "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					if counter.Data == nil {
						counter.Data = map[string]string{}
					}
					counter.Data[fmt.Sprint(number)] = "here"
					_, err = maps.Update(t.Context(), counter, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		counter, err := maps.Get(t.Context(), "counter", metav1.GetOptions{})
		t.ok(err)
		t.is("the writers that were counted", len(counter.Data), 20)
	})
}

func TestAPodIsBoundAndEvicted(t *testing.T) {
	each(t, func(t given) {
		pods := t.client.CoreV1().Pods(t.namespace)
		_, err := pods.Create(t.Context(), pod("one", map[string]string{"app": "one"}), metav1.CreateOptions{})
		t.ok(err)
		t.ok(pods.Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "one"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
		}, metav1.CreateOptions{}))
		bound, err := pods.Get(t.Context(), "one", metav1.GetOptions{})
		t.ok(err)
		t.is("the node", bound.Spec.NodeName, "n1")
		listed, err := t.client.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{
			FieldSelector: "spec.nodeName=n1,metadata.namespace=" + t.namespace,
		})
		t.ok(err)
		t.is("pods of the node", len(listed.Items), 1)
		now := int64(0)
		t.ok(pods.EvictV1(t.Context(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: "one", Namespace: t.namespace},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &now},
		}))
		_, err = pods.Get(t.Context(), "one", metav1.GetOptions{})
		t.is("it is gone", apierrors.IsNotFound(err), true)
	})
}

func TestSelectorsOfTheClientAreThoseOfTheServer(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		for _, of := range []labels.Set{{"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": "1"}} {
			one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-", Labels: of}}
			_, err := maps.Create(t.Context(), one, metav1.CreateOptions{})
			t.ok(err)
		}
		for _, text := range []string{"a", "!a", "a=1", "a!=1", "a in (1,2)", "a notin (1)", "a=1,b", "a,!b"} {
			list, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: text})
			t.ok(err)
			all, err := maps.List(t.Context(), metav1.ListOptions{})
			t.ok(err)
			selector, err := labels.Parse(text)
			t.ok(err)
			expected := 0
			for _, item := range all.Items {
				if selector.Matches(labels.Set(item.Labels)) {
					expected++
				}
			}
			t.is("objects for "+text, len(list.Items), expected)
		}
	})
}

func TestOwnFieldsThatAreNoGoTypesSurvive(t *testing.T) {
	t.Parallel()
	g := in(t)
	raw, err := json.Marshal(deployment("app"))
	g.ok(err)
	answer := g.client.AppsV1().RESTClient().Post().Namespace(g.namespace).Resource("deployments").
		Param("fieldValidation", "Strict").SetHeader("Content-Type", "application/json").
		Body([]byte(strings.Replace(string(raw), `"spec":{`, `"spec":{"surplus":1,`, 1))).Do(t.Context())
	g.is("a field that is not in the schema", apierrors.IsBadRequest(answer.Error()), true)
}
