package clients

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func TestALeaderIsFollowedByTheNextOne(t *testing.T) {
	each(t, func(t given) {
		leads := make(chan string, 10)
		run := func(name string, releases bool) (context.CancelFunc, <-chan struct{}) {
			lock, err := resourcelock.New(resourcelock.LeasesResourceLock, t.namespace, "leader",
				t.client.CoreV1(), t.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
			t.ok(err)
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: releases, Name: name,
				LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leads <- name },
					OnStoppedLeading: func() {},
				},
			})
			t.ok(err)
			while, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				elector.Run(while)
			}()
			return cancel, ended
		}
		stopFirst, firstEnded := run("first", true)
		t.is("the leader", next(t, "a leader", leads), "first")
		stopSecond, secondEnded := run("second", false)
		// Longer than the lease: the first one renews it.
		time.Sleep(3500 * time.Millisecond)
		select {
		case name := <-leads:
			t.Fatalf("%s leads beside the first one", name)
		default:
		}
		stopFirst()
		<-firstEnded
		t.is("the leader after a release", next(t, "a leader", leads), "second")
		// Who ends without a release is waited for.
		stopSecond()
		<-secondEnded
		began := time.Now()
		stopThird, thirdEnded := run("third", true)
		t.is("the leader after an end", next(t, "a leader", leads), "third")
		if time.Since(began) < time.Second {
			t.Errorf("the lease of the second one was not waited for")
		}
		stopThird()
		<-thirdEnded
		lease, err := t.client.CoordinationV1().Leases(t.namespace).Get(t.Context(), "leader", metav1.GetOptions{})
		t.ok(err)
		t.is("changes of the leader", *lease.Spec.LeaseTransitions, 2)
	})
}

func TestRecordersWriteEventsThatAreFoundAgain(t *testing.T) {
	each(t, func(t given) {
		about, err := t.client.CoreV1().ConfigMaps(t.namespace).Create(t.Context(), configMap("one", nil), metav1.CreateOptions{})
		t.ok(err)

		old := record.NewBroadcaster()
		defer old.Shutdown()
		old.StartRecordingToSink(&typed.EventSinkImpl{Interface: t.client.CoreV1().Events(t.namespace)})
		old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"}).Event(about, "Normal", "Old", "by the old recorder")

		newer := events.NewBroadcaster(&events.EventSinkImpl{Interface: t.client.EventsV1()})
		defer newer.Shutdown()
		t.ok(newer.StartRecordingToSinkWithContext(t.Context()))
		recorder := newer.NewRecorder(scheme.Scheme, "tester")
		recorder.Eventf(about, nil, "Warning", "New", "Testing", "by the new recorder")
		t.eventually("both events are found by their object", func() bool {
			found, err := t.client.CoreV1().Events(t.namespace).List(t.Context(), metav1.ListOptions{
				FieldSelector: "involvedObject.uid=" + string(about.UID),
			})
			t.ok(err)
			return len(found.Items) == 2
		})
		// Sooner it would be a series of an event that nobody has made yet; the recorder tries that again after ten seconds.
		recorder.Eventf(about, nil, "Warning", "New", "Testing", "by the new recorder")
		t.eventually("the series is counted", func() bool {
			found, err := t.client.EventsV1().Events(t.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=New"})
			t.ok(err)
			return len(found.Items) == 1 && found.Items[0].Series != nil && found.Items[0].Series.Count >= 2
		})
	})
}
