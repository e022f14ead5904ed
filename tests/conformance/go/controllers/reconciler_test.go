package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const finalizer = "greetings.example.com/goodbye"

// Keeps a ConfigMap for each greeting, and says goodbye before a greeting is deleted.
type reconciler struct {
	client.Client
	goodbyes chan types.NamespacedName
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var greeted greeting
	if err := r.Get(ctx, request.NamespacedName, &greeted); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeted.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&greeted, finalizer) {
			r.goodbyes <- request.NamespacedName
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &greeted))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&greeted, finalizer) {
		if err := r.Update(ctx, &greeted); err != nil {
			return ctrl.Result{}, err
		}
	}
	said := fmt.Sprintf("%s, %s!", greeted.Spec.Text, greeted.Spec.To)
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: greeted.Namespace, Name: greeted.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, written, func() error {
		written.Data = map[string]string{"said": said}
		return controllerutil.SetControllerReference(&greeted, written, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	before := client.MergeFromWithOptions(greeted.DeepCopyObject().(*greeting), client.MergeFromWithOptimisticLock{})
	greeted.Status.Said = said
	meta.SetStatusCondition(&greeted.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Said", ObservedGeneration: greeted.Generation,
	})
	return ctrl.Result{}, r.Status().Patch(ctx, &greeted, before)
}

// The webhooks of the kind: greetings that say nothing say hello, and nobody is greeted with a curse.
type hooks struct{}

func (hooks) Default(_ context.Context, greeted *greeting) error {
	if greeted.Spec.Text == "" {
		greeted.Spec.Text = "Hello"
	}
	return nil
}

func (hooks) check(greeted *greeting) (admission.Warnings, error) {
	if strings.Contains(greeted.Spec.Text, "curse") {
		return nil, errors.New("a greeting does not curse")
	}
	if greeted.Spec.To == "" {
		return admission.Warnings{"nobody is greeted"}, nil
	}
	return nil, nil
}

func (h hooks) ValidateCreate(_ context.Context, greeted *greeting) (admission.Warnings, error) {
	return h.check(greeted)
}

func (h hooks) ValidateUpdate(_ context.Context, _, greeted *greeting) (admission.Warnings, error) {
	return h.check(greeted)
}

func (hooks) ValidateDelete(_ context.Context, greeted *greeting) (admission.Warnings, error) {
	if greeted.Annotations["keep"] != "" {
		return nil, errors.New("a greeting that is to be kept is not deleted")
	}
	return nil, nil
}
