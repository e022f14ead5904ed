package clients

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestAnAccountMayDoWhatItsRoleSays(t *testing.T) {
	each(t, func(t given) {
		_, err := t.client.CoreV1().ServiceAccounts(t.namespace).Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
		t.ok(err)
		_, err = t.client.RbacV1().Roles(t.namespace).Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}},
		}, metav1.CreateOptions{})
		t.ok(err)
		_, err = t.client.RbacV1().RoleBindings(t.namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: t.namespace}},
		}, metav1.CreateOptions{})
		t.ok(err)
		token, err := t.client.CoreV1().ServiceAccounts(t.namespace).CreateToken(t.Context(), "reader",
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		t.ok(err)

		reader := rest.AnonymousClientConfig(config)
		reader.BearerToken = token.Status.Token
		client, err := kubernetes.NewForConfig(reader)
		t.ok(err)
		_, err = client.CoreV1().ConfigMaps(t.namespace).List(t.Context(), metav1.ListOptions{})
		t.ok(err)
		_, err = client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		t.is("another namespace", apierrors.IsForbidden(err), true)
		err = client.CoreV1().ConfigMaps(t.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		t.is("another verb", apierrors.IsForbidden(err), true)
		reader.BearerToken += "x"
		client, err = kubernetes.NewForConfig(reader)
		t.ok(err)
		_, err = client.CoreV1().ConfigMaps(t.namespace).List(t.Context(), metav1.ListOptions{})
		t.is("a broken token", apierrors.IsUnauthorized(err), true)

		review, err := t.client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
		}, metav1.CreateOptions{})
		t.ok(err)
		user := "system:serviceaccount:" + t.namespace + ":reader"
		t.is("the user of the token", review.Status.User.Username, user)
		for verb, isAllowed := range map[string]bool{"list": true, "delete": false} {
			access, err := t.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: t.namespace, Verb: verb, Resource: "configmaps",
				}},
			}, metav1.CreateOptions{})
			t.ok(err)
			t.is("whether it may "+verb, access.Status.Allowed, isAllowed)
		}

		posing := rest.CopyConfig(config)
		posing.Impersonate = rest.ImpersonationConfig{UserName: user}
		client, err = kubernetes.NewForConfig(posing)
		t.ok(err)
		self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		t.ok(err)
		t.is("who the impersonated user is", self.Status.UserInfo.Username, user)
		_, err = client.CoreV1().Secrets(t.namespace).List(t.Context(), metav1.ListOptions{})
		t.is("what the impersonated user may not do", apierrors.IsForbidden(err), true)
	})
}
