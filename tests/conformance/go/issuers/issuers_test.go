// Package issuers verifies tokens of logical clusters with go-oidc, which knows nothing but the issuer that it trusts.
package issuers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"interlock.invalid/tests/conformance/serving"
)

const audience = "sts.example.com"

var (
	server *serving.Server
	config *rest.Config
	// For whoever trusts the authority of the server, and has no credentials.
	verifierClient *http.Client
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if server, err = serving.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Stop()
		if config, err = clientcmd.BuildConfigFromFlags("", server.Kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		authorities := x509.NewCertPool()
		if pem, err := os.ReadFile(server.Authority); err != nil || !authorities.AppendCertsFromPEM(pem) {
			fmt.Fprintln(os.Stderr, "the authority of the server cannot be read:", err)
			return 1
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
		verifierClient = &http.Client{Transport: transport}
		return m.Run()
	}())
}

func logicalClusters(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "interlock.dev", Version: "v1alpha1", Resource: "logicalclusters"}
	return client.Resource(resource)
}

// Makes a logical cluster, and returns a client for it and its issuer.
func cluster(t *testing.T, name string) (*kubernetes.Clientset, string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
		"metadata": map[string]any{"name": name},
	}}
	if _, err := logicalClusters(t).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	inside := rest.CopyConfig(config)
	inside.Host = server.URL + "/clusters/" + name
	client, err := kubernetes.NewForConfig(inside)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Issuer string }
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	return client, document.Issuer
}

// A token of the account `default`.
func token(t *testing.T, client *kubernetes.Clientset, audiences ...string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	accounts := client.CoreV1().ServiceAccounts("default")
	made, err := accounts.CreateToken(t.Context(), "default", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}

func provider(ctx context.Context, issuer string) (*oidc.Provider, error) {
	return oidc.NewProvider(oidc.ClientContext(ctx, verifierClient), issuer)
}

func verifier(t *testing.T, issuer string, accepts *oidc.Config) *oidc.IDTokenVerifier {
	t.Helper()
	found, err := provider(t.Context(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	return found.VerifierContext(oidc.ClientContext(t.Context(), verifierClient), accepts)
}

func isRefused(t *testing.T, verifier *oidc.IDTokenVerifier, token, because string) {
	t.Helper()
	_, err := verifier.Verify(t.Context(), token)
	if err == nil || !strings.Contains(err.Error(), because) {
		t.Errorf("expected a refusal that says %q, got: %v", because, err)
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

func TestATokenIsAcceptedByTheIssuerOfItsClusterAndRefusedByAnother(t *testing.T) {
	blueClient, blue := cluster(t, "blue")
	greenClient, green := cluster(t, "green")
	if blue == green {
		t.Fatalf("both clusters have the issuer %s", blue)
	}
	accepts := &oidc.Config{ClientID: audience}
	blueToken, greenToken := token(t, blueClient, audience), token(t, greenClient, audience)
	for _, one := range []struct{ issuer, token string }{{blue, blueToken}, {green, greenToken}} {
		verified, err := verifier(t, one.issuer, accepts).Verify(t.Context(), one.token)
		if err != nil {
			t.Fatalf("%s refuses its own token: %v", one.issuer, err)
		}
		if verified.Subject != "system:serviceaccount:default:default" || verified.Issuer != one.issuer {
			t.Errorf("%s says it is %s of %s", one.issuer, verified.Subject, verified.Issuer)
		}
		var claims struct {
			Kubernetes struct {
				Namespace      string
				ServiceAccount struct{ Name, UID string }
			} `json:"kubernetes.io"`
		}
		if err := verified.Claims(&claims); err != nil {
			t.Fatal(err)
		}
		account := claims.Kubernetes.ServiceAccount
		if claims.Kubernetes.Namespace != "default" || account.Name != "default" || account.UID == "" {
			t.Errorf("the token names its account so: %+v", claims)
		}
	}
	isRefused(t, verifier(t, green, accepts), blueToken, "issued by a different provider")
	isRefused(t, verifier(t, blue, accepts), greenToken, "issued by a different provider")
}

func TestATokenIsRefusedForAnotherAudienceAfterItsEndAndWhenItWasChanged(t *testing.T) {
	client, issuer := cluster(t, "red")
	good := token(t, client, audience)
	isRefused(t, verifier(t, issuer, &oidc.Config{ClientID: "other"}), good, "expected audience")
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	isRefused(t, verifier(t, issuer, &oidc.Config{ClientID: audience, Now: later}), good, "token is expired")
	parts := strings.Split(good, ".")
	signature := []byte(parts[2])
	// Not the last letter: some of its bits mean nothing.
	if signature[10] == 'A' {
		signature[10] = 'B'
	} else {
		signature[10] = 'A'
	}
	parts[2] = string(signature)
	isRefused(t, verifier(t, issuer, &oidc.Config{ClientID: audience}), strings.Join(parts, "."), "failed to verify signature")
}

func TestATokenWithoutAnAudienceIsForTheIssuerItself(t *testing.T) {
	client, issuer := cluster(t, "white")
	verified, err := verifier(t, issuer, &oidc.Config{ClientID: issuer}).Verify(t.Context(), token(t, client))
	if err != nil {
		t.Fatal(err)
	}
	if len(verified.Audience) < 1 || verified.Audience[0] != issuer {
		t.Errorf("its audiences are %v", verified.Audience)
	}
}

func TestAClusterThatIsMadeAnewIsAnotherIssuer(t *testing.T) {
	client, first := cluster(t, "grey")
	old := token(t, client, audience)
	if err := logicalClusters(t).Delete(t.Context(), "grey", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster is gone", func() bool {
		_, err := logicalClusters(t).Get(t.Context(), "grey", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if _, err := provider(t.Context(), first); err == nil {
		t.Error("the issuer of a deleted cluster is still there")
	}
	client, second := cluster(t, "grey")
	if first == second {
		t.Fatalf("both have the issuer %s", first)
	}
	accepts := &oidc.Config{ClientID: audience}
	isRefused(t, verifier(t, second, accepts), old, "issued by a different provider")
	if _, err := verifier(t, second, accepts).Verify(t.Context(), token(t, client, audience)); err != nil {
		t.Fatal(err)
	}
}

func TestAnIssuerIsKnownByNoOtherURL(t *testing.T) {
	_, issuer := cluster(t, "black")
	for _, other := range []string{issuer + "x", server.URL, server.URL + "/clusters/black"} {
		if _, err := provider(t.Context(), other); err == nil {
			t.Errorf("%s is taken for an issuer", other)
		}
	}
}
