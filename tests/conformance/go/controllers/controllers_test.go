// Package controllers runs a manager of controller-runtime, its controllers and its webhooks, in an envtest.Environment
// whose API server is ours.
package controllers

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"interlock.invalid/tests/conformance/serving"
)

var (
	environment *envtest.Environment
	config      *rest.Config
	// Reads and writes without a cache.
	direct client.Client
	// Reads from the cache of the manager.
	cached   client.Client
	goodbyes = make(chan types.NamespacedName, 100)
	warnings = &warningLog{}
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.UseDevMode(true)))
	os.Exit(func() int {
		if err := start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		context, cancel := context.WithCancel(context.Background())
		manager, err := managerOf(config)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		ended := make(chan error)
		go func() { ended <- manager.Start(context) }()
		cached = manager.GetClient()
		code := 1
		if manager.GetCache().WaitForCacheSync(context) && isCalled(context, manager) {
			code = m.Run()
		}
		cancel()
		if err := <-ended; err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	}())
}

// Starts an API server as envtest does, from programs that the binary under test writes. With USE_EXISTING_CLUSTER=true
// envtest uses the server of KUBECONFIG instead.
func start() error {
	if os.Getenv("USE_EXISTING_CLUSTER") != "true" {
		binary, err := serving.Binary()
		if err != nil {
			return err
		}
		assets, err := os.MkdirTemp("", "interlock-assets-")
		if err != nil {
			return err
		}
		if said, err := exec.Command(binary, "envtest", "assets", assets).CombinedOutput(); err != nil {
			return fmt.Errorf("interlock envtest assets: %w: %s", err, said)
		}
		if err := os.Setenv("KUBEBUILDER_ASSETS", assets); err != nil {
			return err
		}
	}
	environment = &envtest.Environment{
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{definition()},
		WebhookInstallOptions: installed(),
	}
	var err error
	if config, err = environment.Start(); err != nil {
		return err
	}
	config.WarningHandlerWithContext = warnings
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	direct, err = client.New(config, client.Options{Scheme: scheme})
	return err
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// What a chart or a kustomization would install: webhooks behind a service. Envtest makes URLs of it.
func installed() envtest.WebhookInstallOptions {
	at := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "system", Name: "hooks", Path: &path}}
	}
	rules := func(operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{Operations: operations, Rule: admissionv1.Rule{
			APIGroups: []string{groupVersion.Group}, APIVersions: []string{"v1"}, Resources: []string{"greetings"},
		}}}
	}
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionv1.MutatingWebhookConfiguration{{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: "greetings"},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: "default.greetings.example.com", ClientConfig: at("/mutate-greetings-example-com-v1-greeting"),
				Rules: rules(admissionv1.Create, admissionv1.Update), FailurePolicy: &fail, SideEffects: &none,
				AdmissionReviewVersions: []string{"v1"},
			}},
		}},
		ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: "greetings"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "check.greetings.example.com", ClientConfig: at("/validate-greetings-example-com-v1-greeting"),
				Rules:         rules(admissionv1.Create, admissionv1.Update, admissionv1.Delete),
				FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		}},
	}
}

func managerOf(config *rest.Config) (ctrl.Manager, error) {
	hooksAt := environment.WebhookInstallOptions
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:           scheme,
		Metrics:          server.Options{BindAddress: "0"},
		LeaderElection:   true,
		LeaderElectionID: "greetings.example.com", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooksAt.LocalServingHost, Port: hooksAt.LocalServingPort, CertDir: hooksAt.LocalServingCertDir,
		}),
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Transform: cache.TransformStripManagedFields()}}},
	})
	if err != nil {
		return nil, err
	}
	by := func(object client.Object) []string { return []string{object.(*greeting).Spec.To} }
	if err := manager.GetFieldIndexer().IndexField(context.Background(), &greeting{}, "spec.to", by); err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&greeting{}).Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{Client: manager.GetClient(), goodbyes: goodbyes})
	if err != nil {
		return nil, err
	}
	return manager, ctrl.NewWebhookManagedBy(manager, &greeting{}).WithDefaulter(hooks{}).WithValidator(hooks{}).Complete()
}

// Waits until this manager leads and its webhooks answer.
func isCalled(context context.Context, manager ctrl.Manager) bool {
	<-manager.Elected()
	for range 200 {
		err := direct.Create(context, greet("default", "is-called", "", "everyone"), client.DryRunAll)
		if err == nil {
			return true
		}
		fmt.Fprintln(os.Stderr, "not yet:", err)
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// Warnings of the server, as a person would read them.
type warningLog struct {
	lock  sync.Mutex
	texts []string
}

func (w *warningLog) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warningLog) has(text string) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, one := range w.texts {
		if one == text {
			return true
		}
	}
	return false
}

func greet(namespace, name, text, to string) *greeting {
	return &greeting{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: greetingSpec{Text: text, To: to},
	}
}

func namespaceOf(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	ok(t, direct.Create(t.Context(), namespace))
	return namespace.Name
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestAReconcilerKeepsWhatItOwns(t *testing.T) {
	namespace := namespaceOf(t)
	key := client.ObjectKey{Namespace: namespace, Name: "one"}
	ok(t, direct.Create(t.Context(), greet(namespace, "one", "Hi", "Ann")))
	said := func(expected string) func() bool {
		return func() bool {
			var written corev1.ConfigMap
			return direct.Get(t.Context(), key, &written) == nil && written.Data["said"] == expected
		}
	}
	eventually(t, "the greeting is said", said("Hi, Ann!"))
	var greeted greeting
	eventually(t, "the greeting is ready", func() bool {
		ok(t, direct.Get(t.Context(), key, &greeted))
		return meta.IsStatusConditionTrue(greeted.Status.Conditions, "Ready")
	})
	before := client.MergeFrom(greeted.DeepCopyObject().(*greeting))
	greeted.Spec.To = "Bob"
	ok(t, direct.Patch(t.Context(), &greeted, before))
	eventually(t, "the change is said", said("Hi, Bob!"))
	ok(t, direct.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}))
	eventually(t, "what was deleted is made anew", said("Hi, Bob!"))

	var found greetingList
	eventually(t, "the index of the cache finds it", func() bool {
		ok(t, cached.List(t.Context(), &found, client.InNamespace(namespace), client.MatchingFields{"spec.to": "Bob"}))
		return len(found.Items) == 1
	})
	ok(t, cached.List(t.Context(), &found, client.InNamespace(namespace), client.MatchingFields{"spec.to": "Ann"}))
	if len(found.Items) != 0 {
		t.Errorf("the index still has Ann: %v", found.Items)
	}
}

func TestAFinalizerDelaysADeletionAndTheOwnedObjectFollows(t *testing.T) {
	namespace := namespaceOf(t)
	key := client.ObjectKey{Namespace: namespace, Name: "one"}
	ok(t, direct.Create(t.Context(), greet(namespace, "one", "Hi", "Ann")))
	eventually(t, "the greeting has its finalizer and its ConfigMap", func() bool {
		var greeted greeting
		ok(t, direct.Get(t.Context(), key, &greeted))
		return len(greeted.Finalizers) == 1 && direct.Get(t.Context(), key, &corev1.ConfigMap{}) == nil
	})
	ok(t, direct.Delete(t.Context(), greet(namespace, "one", "", ""), client.PropagationPolicy(metav1.DeletePropagationForeground)))
	eventually(t, "goodbye was said", func() bool {
		select {
		case said := <-goodbyes:
			return said == types.NamespacedName(key)
		default:
			return false
		}
	})
	for _, object := range []client.Object{&greeting{}, &corev1.ConfigMap{}} {
		eventually(t, fmt.Sprintf("the %T is gone", object), func() bool {
			return apierrors.IsNotFound(direct.Get(t.Context(), key, object))
		})
	}
}

func TestDeleteAllOfDeletesWhatWasSelected(t *testing.T) {
	namespace := namespaceOf(t)
	for number := range 4 {
		one := greet(namespace, fmt.Sprintf("g%d", number), "Hi", "Ann")
		one.Labels = map[string]string{"odd": fmt.Sprint(number%2 == 1)}
		ok(t, direct.Create(t.Context(), one))
	}
	ok(t, direct.DeleteAllOf(t.Context(), &greeting{}, client.InNamespace(namespace), client.MatchingLabels{"odd": "true"}))
	eventually(t, "two are left", func() bool {
		var left greetingList
		ok(t, direct.List(t.Context(), &left, client.InNamespace(namespace)))
		return len(left.Items) == 2 && left.Items[0].Name == "g0" && left.Items[1].Name == "g2"
	})
}

func TestWebhooksChangeWarnAndRefuse(t *testing.T) {
	namespace := namespaceOf(t)
	made := greet(namespace, "made", "", "")
	ok(t, direct.Create(t.Context(), made))
	if made.Spec.Text != "Hello" {
		t.Errorf("the default is %q", made.Spec.Text)
	}
	if !warnings.has("nobody is greeted") {
		t.Error("the warning did not arrive")
	}
	err := direct.Create(t.Context(), greet(namespace, "bad", "a curse", "Ann"))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a greeting does not curse") {
		t.Errorf("a create that the webhook refuses: %v", err)
	}
	err = direct.Patch(t.Context(), made, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"text":"another curse"}}`)))
	if !apierrors.IsForbidden(err) {
		t.Errorf("a patch that the webhook refuses: %v", err)
	}
	keep := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"keep":"yes"}}}`))
	ok(t, direct.Patch(t.Context(), made, keep))
	if err := direct.Delete(t.Context(), made); !apierrors.IsForbidden(err) {
		t.Errorf("a deletion that the webhook refuses: %v", err)
	}
	err = direct.DeleteAllOf(t.Context(), &greeting{}, client.InNamespace(namespace))
	if !apierrors.IsForbidden(err) {
		t.Errorf("a deletion of all that the webhook refuses: %v", err)
	}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))
	ok(t, direct.Patch(t.Context(), made, free))
	ok(t, direct.Delete(t.Context(), made))
}

func TestTheClientAppliesOnTheServer(t *testing.T) {
	namespace := namespaceOf(t)
	owned := coreapply.ConfigMap("one", namespace).WithData(map[string]string{"a": "1"})
	ok(t, direct.Apply(t.Context(), owned, client.FieldOwner("first")))
	other := coreapply.ConfigMap("one", namespace).WithData(map[string]string{"a": "2"})
	if err := direct.Apply(t.Context(), other, client.FieldOwner("second")); !apierrors.IsConflict(err) {
		t.Errorf("a field of somebody else: %v", err)
	}
	ok(t, direct.Apply(t.Context(), other, client.FieldOwner("second"), client.ForceOwnership))
	var read corev1.ConfigMap
	ok(t, direct.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "one"}, &read))
	if read.Data["a"] != "2" {
		t.Errorf("the data are %v", read.Data)
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	ok(t, direct.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "one"}, partial))
	if len(partial.ManagedFields) != 1 || partial.ManagedFields[0].Manager != "second" {
		t.Errorf("the managers are %v", partial.ManagedFields)
	}
}

func TestUsersOfTheEnvironmentMayDoWhatTheirRolesSay(t *testing.T) {
	if os.Getenv("USE_EXISTING_CLUSTER") == "true" {
		t.Skip("envtest makes users of its own servers only")
	}
	user, err := environment.AddUser(envtest.User{Name: "ann", Groups: []string{"guests"}}, nil)
	ok(t, err)
	guest, err := client.New(user.Config(), client.Options{})
	ok(t, err)
	var list corev1.ConfigMapList
	if err := guest.List(t.Context(), &list); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "ann"`) {
		t.Errorf("a guest lists all: %v", err)
	}
	kubectl, err := user.Kubectl()
	ok(t, err)
	out, _, err := kubectl.Run("version", "--output=json")
	ok(t, err)
	text, err := io.ReadAll(out)
	ok(t, err)
	if !strings.Contains(string(text), "+interlock") {
		t.Errorf("kubectl talks to another server: %s", text)
	}
}

// Last, by its name: nothing else runs while the server is away.
func TestZTheServerKeepsItsDataWhenItIsStartedAgain(t *testing.T) {
	if os.Getenv("USE_EXISTING_CLUSTER") == "true" {
		t.Skip("envtest starts its own servers only")
	}
	other := &envtest.Environment{}
	// A directory of the test's own: envtest makes another one, and other certificates, at each start.
	other.ControlPlane.GetAPIServer().CertDir = t.TempDir()
	otherConfig, err := other.Start()
	ok(t, err)
	defer func() { ok(t, other.Stop()) }()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	writer, err := client.New(otherConfig, client.Options{})
	ok(t, err)
	ok(t, writer.Create(t.Context(), made))
	ok(t, other.ControlPlane.APIServer.Stop())
	if err := writer.Get(t.Context(), client.ObjectKeyFromObject(made), made); err == nil {
		t.Error("the API server that was stopped answers")
	}
	ok(t, other.ControlPlane.APIServer.Start())
	again, err := other.ControlPlane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	ok(t, err)
	reader, err := client.New(again.Config(), client.Options{})
	ok(t, err)
	read := &corev1.ConfigMap{}
	ok(t, reader.Get(t.Context(), client.ObjectKeyFromObject(made), read))
	if read.UID != made.UID {
		t.Errorf("it is another object: %s and %s", read.UID, made.UID)
	}
}
