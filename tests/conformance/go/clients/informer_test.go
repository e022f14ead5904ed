package clients

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"

	"interlock.invalid/tests/conformance/serving"
)

func TestAnInformerHearsOfEveryChangeAndResyncs(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		_, err := maps.Create(t.Context(), configMap("first", nil), metav1.CreateOptions{})
		t.ok(err)
		factory := informers.NewSharedInformerFactoryWithOptions(t.client, time.Second, informers.WithNamespace(t.namespace))
		informer := factory.Core().V1().ConfigMaps()
		news := make(chan string, 100)
		var resyncs atomic.Int32
		is := func(object any) string {
			if gone, isGone := object.(cache.DeletedFinalStateUnknown); isGone {
				object = gone.Obj
			}
			return object.(*corev1.ConfigMap).Name + object.(*corev1.ConfigMap).Data["n"]
		}
		_, err = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(object any) { news <- "+" + is(object) },
			UpdateFunc: func(before, after any) {
				if before.(*corev1.ConfigMap).ResourceVersion == after.(*corev1.ConfigMap).ResourceVersion {
					resyncs.Add(1)
					return
				}
				news <- "~" + is(before) + ">" + is(after)
			},
			DeleteFunc: func(object any) { news <- "-" + is(object) },
		})
		t.ok(err)
		stop, cancel := context.WithCancel(t.Context())
		defer factory.Shutdown()
		defer cancel()
		factory.Start(stop.Done())
		if !cache.WaitForCacheSync(stop.Done(), informer.Informer().HasSynced) {
			t.Fatal("the cache is never filled")
		}
		// The authority is in a map that the server makes for each namespace.
		seen := map[string]bool{next(t, "the first object", news): true, next(t, "the other object", news): true}
		t.is("what there was", seen["+first"] && seen["+kube-root-ca.crt"], true)
		made, err := maps.Create(t.Context(), configMap("second", map[string]string{"n": "1"}), metav1.CreateOptions{})
		t.ok(err)
		t.is("news", next(t, "a new object", news), "+second1")
		made.Data["n"] = "2"
		_, err = maps.Update(t.Context(), made, metav1.UpdateOptions{})
		t.ok(err)
		t.is("news", next(t, "a change", news), "~second1>second2")
		t.ok(maps.Delete(t.Context(), "second", metav1.DeleteOptions{}))
		t.is("news", next(t, "a deletion", news), "-second2")
		t.eventually("the informer resyncs", func() bool { return resyncs.Load() >= 2 })
		listed, err := informer.Lister().ConfigMaps(t.namespace).Get("first")
		t.ok(err)
		t.is("what the lister shows", listed.Name, "first")
	})
}

func TestAWatchBeginsWithWhatThereIsAndBookmarksItsEnd(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		_, err := maps.Create(t.Context(), configMap("one", nil), metav1.CreateOptions{})
		t.ok(err)
		yes, seconds := true, int64(3)
		events, err := maps.Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, FieldSelector: "metadata.name=one",
		})
		t.ok(err)
		defer events.Stop()
		begun := time.Now()
		event := next(t, "the object", events.ResultChan())
		t.is("the first event", event.Type, watch.Added)
		event = next(t, "the bookmark", events.ResultChan())
		t.is("the second event", event.Type, watch.Bookmark)
		bookmark := event.Object.(*corev1.ConfigMap)
		t.is("its annotation", bookmark.Annotations[metav1.InitialEventsAnnotationKey], "true")
		if bookmark.ResourceVersion == "" {
			t.Error("the bookmark has no version")
		}
		// Something else moves the version on; the last bookmark knows.
		moved, err := maps.Create(t.Context(), configMap("other", nil), metav1.CreateOptions{})
		t.ok(err)
		last := ""
		for event := range events.ResultChan() {
			t.is("what follows", event.Type, watch.Bookmark)
			last = event.Object.(*corev1.ConfigMap).ResourceVersion
		}
		if time.Since(begun) > 20*time.Second {
			t.Error("the watch did not end by itself")
		}
		before, err := strconv.ParseUint(last, 10, 64)
		t.ok(err)
		after, err := strconv.ParseUint(moved.ResourceVersion, 10, 64)
		t.ok(err)
		t.is("the last bookmark is as new as the last write", before >= after, true)
	})
}

func TestAWatchFromAVersionThatIsNoneIsRefused(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		_, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "nonsense"})
		t.is("no number", apierrors.IsInvalid(err), true)
		events, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "999999999"})
		t.ok(err)
		event := next(t, "a version of the future", events.ResultChan())
		t.is("the event", event.Type, watch.Error)
		t.is("its error", apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), true)
	})
}

func TestThePagerReadsAListInPartsAndAWatchFollowsIt(t *testing.T) {
	each(t, func(t given) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		for number := range 30 {
			_, err := maps.Create(t.Context(), configMap(fmt.Sprintf("m%d", number), nil), metav1.CreateOptions{})
			t.ok(err)
		}
		pages := 0
		reader := pager.New(func(context context.Context, options metav1.ListOptions) (runtime.Object, error) {
			pages++
			return maps.List(context, options)
		})
		reader.PageSize = 7
		list, isPaged, err := reader.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		t.ok(err)
		t.is("pages", fmt.Sprint(pages, isPaged), "5 true")
		t.is("objects", meta.LenList(list), 30)
		accessor, err := meta.ListAccessor(list)
		t.ok(err)
		events, err := watchtools.NewRetryWatcherWithContext(t.Context(), accessor.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(context context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return maps.Watch(context, options)
			},
		})
		t.ok(err)
		defer events.Stop()
		t.ok(maps.Delete(t.Context(), "m7", metav1.DeleteOptions{}))
		event := next(t, "the first event after the list", events.ResultChan())
		t.is("the event", event.Type, watch.Deleted)
		t.is("the object", event.Object.(*corev1.ConfigMap).Name, "m7")
	})
}

// A server of its own: it is killed.
func TestAnInformerGoesOnAfterACrashOfTheServer(t *testing.T) {
	server, err := serving.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	config, err := configOf(server)
	if err != nil {
		t.Fatal(err)
	}
	g := with(t, config)
	factory := informers.NewSharedInformerFactoryWithOptions(g.client, 0, informers.WithNamespace(g.namespace))
	informer := factory.Core().V1().ConfigMaps()
	var deletions, lists atomic.Int32
	_, err = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(any) { deletions.Add(1) },
		AddFunc:    func(any) { lists.Add(1) },
	})
	g.ok(err)
	stop, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(stop.Done())
	cache.WaitForCacheSync(stop.Done(), informer.Informer().HasSynced)
	write := func(client *kubernetes.Clientset, name string) {
		_, err := client.CoreV1().ConfigMaps(g.namespace).Create(t.Context(), configMap(name, nil), metav1.CreateOptions{})
		g.ok(err)
	}
	shows := func(name string) func() bool {
		return func() bool {
			_, err := informer.Lister().ConfigMaps(g.namespace).Get(name)
			return err == nil
		}
	}
	write(g.client, "before")
	g.eventually("the informer shows the object", shows("before"))
	server.Kill()
	g.ok(server.Resume())
	write(g.client, "after")
	g.eventually("the informer goes on", shows("after"))
	g.is("objects that the crash took away", deletions.Load(), 0)
	g.is("objects that were shown as new", lists.Load(), 3)
}
