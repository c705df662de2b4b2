package distribute

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

var (
	configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	resource   = corev1.SchemeGroupVersion.WithResource("configmaps")
	synced     = watchset.Status{State: watchset.Synced, Resource: resource}
)

// cluster is a small model of an API server with ConfigMaps and ResourceDistributions, and the State of a leader that works on them. Its
// clock advances only when nothing is left to do but to wait.
type cluster struct {
	t        testing.TB
	state    *State
	now      time.Time
	forest   *forest.Snapshot
	version  int
	objects  map[string]map[string]any // ConfigMaps by namespace/name
	rds      map[string]*v1alpha1.ResourceDistribution
	events   []Input // what the watches have not shown yet, the oldest first
	queue    []Key
	later    map[Key]time.Time // when keys that are put off are due
	writes   []string
	statuses int      // how often the status was written
	reports  []string // Events, by reason
	watches  int      // the number of watches for obstacles
	// listFails is the error of each list of obstacles; nil if they succeed.
	listFails error
	// unwatched is the status of the watches of obstacles; the zero Status stands for Synced.
	unwatched watchset.Status
	covered   bool                      // whether the kind is in mode All of propagation
	kinds     []schema.GroupVersionKind // distribution.kinds from the next start on
	// awaiting is the namespace that waits for its share; "" if there is none.
	awaiting string
	// refuse returns the error of a write of a copy; nil accepts every write.
	refuse func(verb Verb, slot copies.Slot) error
}

// newCluster returns a cluster with these namespaces and no objects.
func newCluster(t testing.TB, namespaces ...string) *cluster {
	c := &cluster{
		t: t, now: time.Unix(1_000_000, 0), forest: forest.New(forest.Rules{}), version: 100, objects: map[string]map[string]any{},
		rds: map[string]*v1alpha1.ResourceDistribution{}, kinds: []schema.GroupVersionKind{configMaps},
	}
	for _, name := range namespaces {
		c.forest = c.forest.WithNamespace(&forest.Namespace{Name: name, UID: name})
	}
	c.start()
	return c
}

// start replaces the State by that of a process that has just started, has listed everything, and leads.
func (c *cluster) start() {
	timing := DefaultTiming()
	c.state = NewState(c.forest, Options{
		Settings: Settings{Kinds: c.kinds, AllowOverwrite: true,
			Protected: func(name string) bool { return name == "kube-system" }},
		Covered:       func(schema.GroupKind) bool { return c.covered },
		AwaitsShare:   func(namespace string) bool { return namespace == c.awaiting },
		RetryMin:      time.Second,
		RetryMax:      time.Minute,
		DegradedAfter: time.Minute,
		Timing:        timing,
	})
	c.events, c.queue, c.later, c.watches = nil, nil, map[Key]time.Time{}, 0
	c.applyTo(DefinitionChanged{})
	if len(c.kinds) > 0 {
		c.listCopies()
		c.applyTo(KindChanged{Kind: configMaps.GroupKind(), Status: synced})
	}
	c.applyTo(DistributionsListed{All: slices.Collect(maps.Values(c.rds))})
	c.applyTo(Elected{})
}

// listCopies makes the watch of copies list anew. Events that it has not shown yet are lost.
func (c *cluster) listCopies() {
	c.events = slices.DeleteFunc(c.events, func(event Input) bool {
		switch event.(type) {
		case CopySeen, CopyGone:
			return true
		}
		return false
	})
	c.applyTo(CopiesListed{configMaps.GroupKind(), strconv.Itoa(c.version),
		c.list(func(meta *metav1.PartialObjectMetadata) bool { return meta.Labels[v1alpha1.LabelDistributedBy] != "" })})
}

func (c *cluster) applyTo(input Input) (request Request) {
	for _, output := range c.state.Apply(c.now, input) {
		switch one := output.(type) {
		case Queue:
			c.queueKeys(one)
		case copies.Event:
			c.reports = append(c.reports, string(one.Reason))
		case FollowObstacles:
			c.follow()
		case Request:
			if request != nil {
				c.t.Fatalf("two requests follow from %T", input)
			}
			request = one
		}
	}
	return request
}

// follow starts the watches of obstacles that the State wants, each with a list; show adds later changes.
func (c *cluster) follow() {
	wanted := c.state.ObstacleWatches()
	if c.watches = len(wanted); c.watches == 0 {
		return
	}
	for w := range wanted {
		if c.unwatched.State != "" {
			c.events = append(c.events, ObstacleWatchChanged{w, c.unwatched})
			continue
		}
		objects := c.list(func(meta *metav1.PartialObjectMetadata) bool {
			return meta.Name == w.Name && meta.Labels[v1alpha1.LabelDistributedBy] != w.Distribution
		})
		c.events = append(c.events, ObstaclesListed{w, strconv.Itoa(c.version), objects}, ObstacleWatchChanged{w, synced})
	}
}

func (c *cluster) list(match func(*metav1.PartialObjectMetadata) bool) (all []*metav1.PartialObjectMetadata) {
	for _, object := range c.objects {
		if meta := metadataOf(object); match(meta) {
			all = append(all, meta)
		}
	}
	return all
}

func metadataOf(object map[string]any) *metav1.PartialObjectMetadata {
	meta, err := metaOf(object)
	if err != nil {
		panic(err)
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: *meta}
}

// showAll shows what the watches have to show, and does no work.
func (c *cluster) showAll() {
	for _, event := range c.events {
		c.applyTo(event)
	}
	c.events = nil
}

// settle does all work. For work that is put off, it waits until limit has passed.
func (c *cluster) settle(limit time.Duration) {
	c.t.Helper()
	end := c.now.Add(limit)
	for range 20_000 {
		switch {
		case len(c.events) > 0:
			event := c.events[0]
			c.events = c.events[1:]
			c.applyTo(event)
		case len(c.queue) > 0:
			key := c.queue[0]
			c.queue = c.queue[1:]
			c.work(key)
		case !c.wait(end):
			return
		}
	}
	c.t.Fatalf("work does not end: %v", c.writes[max(0, len(c.writes)-20):])
}

// wait advances the clock to the time of the next work that was put off, if that is before end.
func (c *cluster) wait(end time.Time) bool {
	var next Key
	for key, at := range c.later {
		if due, known := c.later[next]; !known || at.Before(due) || at.Equal(due) && key.Namespace < next.Namespace {
			next = key
		}
	}
	due, known := c.later[next]
	if !known || due.After(end) {
		c.now = end
		return false
	}
	delete(c.later, next)
	c.now, c.queue = due, append(c.queue, next)
	return true
}

// queueKeys does what the runner's queue does: of several delays of a key, the shortest counts.
func (c *cluster) queueKeys(q Queue) {
	for _, key := range q.Keys {
		due, known := c.later[key]
		switch at := c.now.Add(q.After); {
		case q.After == 0 && !slices.Contains(c.queue, key):
			c.queue = append(c.queue, key)
		case q.After > 0 && (!known || at.Before(due)):
			c.later[key] = at
		}
	}
}

func (c *cluster) work(key Key) {
	for request := c.applyTo(Started{key}); request != nil; {
		var answer Input
		switch one := request.(type) {
		case ListObstacles:
			answer = ObstaclesFound{ListObstacles: one, Err: c.listFails, Objects: c.list(func(meta *metav1.PartialObjectMetadata) bool {
				return meta.Name == one.Name && meta.Labels[v1alpha1.LabelDistributedBy] != one.Distribution
			})}
		case WriteStatus:
			answer = c.writeStatus(one)
		case WriteCopy:
			answer = c.writeCopy(one)
		}
		request = c.applyTo(answer)
	}
}

func (c *cluster) writeStatus(w WriteStatus) StatusWritten {
	rd := c.rds[w.Name]
	switch {
	case rd == nil || string(rd.UID) != w.UID:
		return StatusWritten{WriteStatus: w, Err: apierrors.NewNotFound(schema.GroupResource{}, w.Name)}
	case rd.ResourceVersion != w.ResourceVersion:
		return StatusWritten{WriteStatus: w, Err: apierrors.NewConflict(schema.GroupResource{}, w.Name, nil)}
	}
	rd = rd.DeepCopy()
	rd.Status = w.Status
	c.statuses++
	c.storeDistribution(rd)
	return StatusWritten{WriteStatus: w, NewVersion: rd.ResourceVersion}
}

func (c *cluster) storeDistribution(rd *v1alpha1.ResourceDistribution) {
	rd.ResourceVersion = c.nextVersion()
	c.rds[rd.Name] = rd
	c.events = append(c.events, DistributionSeen{rd.DeepCopy()})
}

func (c *cluster) nextVersion() string {
	c.version++
	return strconv.Itoa(c.version)
}

// distribute creates or changes ResourceDistribution rd, whose object is ConfigMap "settings" with this data.
func (c *cluster) distribute(data string, change ...func(*v1alpha1.ResourceDistributionSpec)) {
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "rd", UID: types.UID("rd-" + c.nextVersion())}}
	if known := c.rds["rd"]; known != nil {
		rd = known.DeepCopy()
	}
	rd.Generation++
	rd.Spec = v1alpha1.ResourceDistributionSpec{Resource: runtime.RawExtension{
		Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"k":%q}}`, data),
	}}
	for _, change := range change {
		change(&rd.Spec)
	}
	c.storeDistribution(rd)
}

// deleteDistribution deletes rd and, as the garbage collector would, the copies of which it is the owner.
func (c *cluster) deleteDistribution() {
	rd := c.rds["rd"]
	delete(c.rds, "rd")
	c.events = append(c.events, DistributionGone{rd})
	for place, object := range c.objects {
		if references := metadataOf(object).OwnerReferences; len(references) > 0 && references[0].UID == rd.UID {
			c.remove(place)
		}
	}
}

func (c *cluster) remove(place string) {
	meta := metadataOf(c.objects[place])
	delete(c.objects, place)
	meta.ResourceVersion = c.nextVersion()
	c.show(meta, false)
}

// write stores an object with manager as its field manager, and has the watches show it.
func (c *cluster) write(namespace string, object map[string]any, manager string) *metav1.PartialObjectMetadata {
	known, exists := c.objects[namespace+"/settings"]
	err := ChangeMeta(object, func(meta *metav1.ObjectMeta) {
		meta.Namespace, meta.Name, meta.ResourceVersion = namespace, "settings", c.nextVersion()
		if meta.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", c.version)); exists {
			meta.UID = metadataOf(known).UID
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
	raw, _ := json.Marshal(map[string]any{"f:data": object["data"], "f:metadata": map[string]any{
		"f:labels": fieldSet(metadataOf(object).Labels), "f:annotations": fieldSet(metadataOf(object).Annotations),
	}})
	fields := metav1.FieldsV1{}
	fields.SetRawBytes(raw)
	object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": manager, "operation": "Update", "fieldsV1": fields}}
	c.objects[namespace+"/settings"] = object
	c.show(metadataOf(object), true)
	return metadataOf(object)
}

func fieldSet(keys map[string]string) map[string]any {
	all := map[string]any{}
	for key := range keys {
		all["f:"+key] = map[string]any{}
	}
	return all
}

// show adds the events by which the watch of copies and the watches of obstacles show an object.
func (c *cluster) show(meta *metav1.PartialObjectMetadata, exists bool) {
	gk := configMaps.GroupKind()
	_, isCopy := meta.Labels[v1alpha1.LabelDistributedBy]
	if isCopy && exists {
		c.events = append(c.events, CopySeen{gk, meta})
	} else {
		c.events = append(c.events, CopyGone{gk, meta})
	}
	for w := range c.state.ObstacleWatches() {
		if c.unwatched.State != "" {
			continue
		}
		if exists && meta.Labels[v1alpha1.LabelDistributedBy] != w.Distribution {
			c.events = append(c.events, ObstacleSeen{w, meta})
		} else {
			c.events = append(c.events, ObstacleGone{w, meta})
		}
	}
}

// stranger puts an object of another user where a copy belongs.
func (c *cluster) stranger(namespace, data string) {
	c.write(namespace, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": data}}, "somebody")
}

// data returns the data of the object in each namespace that has one.
func (c *cluster) data() map[string]string {
	all := map[string]string{}
	for _, object := range c.objects {
		all[metadataOf(object).Namespace] = object["data"].(map[string]any)["k"].(string)
	}
	return all
}

// acceptAll has the API server accept every write from now on.
func (c *cluster) acceptAll() { c.refuse = nil }

// status returns the status of rd.
func (c *cluster) status() v1alpha1.ResourceDistributionStatus { return c.rds["rd"].Status }

func (c *cluster) ready() string {
	if ready := v1alpha1.FindCondition(c.status().Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
