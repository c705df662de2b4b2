package oracle

import (
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// Requests asks the authorizer who may become the temporary sudoer of a tenant, and compares its answers with what people have asked for
// and decided. All its times are by the API server's clock.
type Requests struct {
	// Found is what is not as it should be.
	Found []Finding
	// Asked counts the questions, Granted those that the authorizer has answered with yes.
	Asked, Granted int
	// OperatorSince and ManagerSince are since when the operator and the controller manager work undisturbed; zero: they don't.
	OperatorSince, ManagerSince time.Time

	server  *api.Server
	rand    *rand.Rand
	people  []string
	groups  map[string][]string // of each person
	tenants []string
	records []*record
}

// record is what is known of one SudoRequest, and of the grant that was made of it.
type record struct {
	uid                 types.UID
	tenant, name        string
	user, group         string
	duration            time.Duration
	breakGlass          bool
	tenantUID           types.UID
	isGrantable         bool
	grantable           time.Time // since when, or when last
	ended               time.Time // since when something ends it; zero: nothing does
	isOver              bool      // it must not come into force any more
	isDoubtful          bool      // something was once against it, so it need not be granted
	started             time.Time // when startTime was first written
	jobMade, jobDone    time.Time
	isInForce, wasGiven bool
	until               time.Time // when the right must be gone if the controller manager works
}

const (
	sudoNamespace = "warren-sudo"
	// prompt is how long the operator may take for what it has to do; ready is how long after it has begun to work.
	prompt, ready = 2 * time.Second, 5 * time.Second
	// unsure is how old what the operator has read may be when its write is carried out, in troubled times.
	unsure = time.Minute
	// granting is how long a request that may be granted may wait for that, once all has worked for as long.
	granting = 20 * time.Second
	mostOpen = 3
)

// NewRequests returns an oracle of what people, who are in groups, may do in tenants.
func NewRequests(server *api.Server, seed uint64, people []string, groups map[string][]string, tenants []string) *Requests {
	o := &Requests{server: server, rand: rand.New(rand.NewPCG(seed, 4)), people: people, groups: groups, tenants: tenants}
	server.Observe(o.take)
	return o
}

func (o *Requests) report(format string, args ...any) {
	o.Found = append(o.Found, findingOf(Sudo, format, args...))
}

// Look asks about rights whose time should be over, and one more question at a part of the moments: every second time about someone who
// has asked for a right. It reports whether any right is in force.
func (o *Requests) Look() bool {
	inForce := false
	for _, r := range o.records {
		if inForce = inForce || r.isInForce; r.isInForce && (o.server.Now().After(r.until) || !r.ended.IsZero()) {
			o.ask(r.user, r.tenant)
		}
	}
	if o.rand.IntN(8) == 0 {
		o.askAnything()
	}
	return inForce
}

func (o *Requests) askAnything() {
	o.checkGranted()
	person, tenant := o.people[o.rand.IntN(len(o.people))], o.tenants[o.rand.IntN(len(o.tenants))]
	if n := len(o.records); n > 0 && o.rand.IntN(2) == 0 {
		r := o.records[n-1-o.rand.IntN(min(n, 6))]
		person, tenant = r.user, r.tenant
	}
	o.ask(person, tenant)
}

// AskAll asks about each person and tenant.
func (o *Requests) AskAll() {
	for _, person := range o.people {
		for _, tenant := range o.tenants {
			o.ask(person, tenant)
		}
	}
}

func (o *Requests) ask(person, tenant string) {
	o.Asked++
	if !o.server.AllowedTo(person, o.groups[person], api.Attributes{Verb: "impersonate", Resource: "serviceaccounts",
		Namespace: sudoNamespace, Name: tenant}) {
		return
	}
	o.Granted++
	why := ""
	for _, r := range slices.Backward(o.records) {
		if r.user != person || r.tenant != tenant {
			continue
		}
		is := o.judge(r)
		if is == "" {
			return
		}
		if r.isInForce || why == "" {
			why = is
		}
	}
	if why == "" {
		why = "they never asked for it"
	}
	o.report("%s may become %s:%s, but %s", person, sudoNamespace, tenant, why)
}

// judge returns why the right that a request asked for must not be in force now; "" if it may be.
func (o *Requests) judge(r *record) string {
	now := o.server.Now()
	switch {
	case !r.wasGiven:
		return "request " + r.name + " was not granted"
	case o.isDue(r.ended, now):
		return "something has ended request " + r.name + " at " + r.ended.Format(time.StampMilli)
	case now.After(r.until) && !o.ManagerSince.IsZero() && now.After(later(r.until, o.ManagerSince.Add(prompt))):
		return "the time of request " + r.name + " was over at " + r.until.Format(time.StampMilli)
	case now.After(r.until) && o.ManagerSince.IsZero() && o.isDue(r.until.Add(ready), now):
		return "the time of request " + r.name + " was over at " + r.until.Format(time.StampMilli) + ", and there is no controller manager"
	}
	return ""
}

// isDue reports whether the operator must have acted on what was so since a time.
func (o *Requests) isDue(since, now time.Time) bool {
	if since.IsZero() || o.OperatorSince.IsZero() {
		return false
	}
	if since.After(o.OperatorSince) {
		return now.After(later(since.Add(prompt), o.OperatorSince.Add(ready)))
	}
	return now.After(o.OperatorSince.Add(ready))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// take takes in a change, after which the rules of some requests are others.
func (o *Requests) take(e api.Event) {
	now := e.At
	switch r := e.New; {
	case r.Kind.Has(domain, "sudorequests"):
		if e.Type == watch.Added {
			o.addRecord(r)
		}
		o.update(r.GetNamespace(), now)
	case r.Kind.Has(domain, "lnamespaces"):
		o.update(r.GetName(), now)
	case r.Kind.Group == "admissionregistration.k8s.io":
		o.update("", now)
	case r.GetNamespace() == sudoNamespace && r.Kind.Resource == "jobs":
		o.takeJob(e)
	case r.GetNamespace() == sudoNamespace && r.Kind.Resource == "rolebindings":
		o.takeBinding(e)
	}
}

func (o *Requests) find(uid types.UID) *record {
	for _, r := range o.records {
		if r.uid == uid {
			return r
		}
	}
	return nil
}

// Doubt takes in that a cluster admin has meddled with a request, which need not be granted any more.
func (o *Requests) Doubt(uid string) {
	if r := o.find(types.UID(uid)); r != nil {
		r.isDoubtful = true
	}
}

func (o *Requests) takeJob(e api.Event) {
	r := o.find(types.UID(e.New.GetName()))
	if r == nil || e.Type == watch.Deleted {
		return
	}
	if e.Type == watch.Added {
		r.jobMade, r.jobDone = e.At, time.Time{}
	}
	if _, done, _ := unstructured.NestedString(e.New.Object, "status", "completionTime"); done && r.jobDone.IsZero() {
		r.jobDone = e.At
	}
}

// takeBinding judges a right that comes into force. What the operator has read may be older than its write.
func (o *Requests) takeBinding(e api.Event) {
	r := o.find(types.UID(e.New.GetName()))
	switch {
	case r == nil:
		return // whom it lets through, questions find
	case e.Type == watch.Deleted:
		r.isInForce = false
		return
	case e.Type != watch.Added:
		return
	}
	old, slow := prompt, time.Duration(0)
	if o.OperatorSince.IsZero() {
		old, slow = unsure, 15*time.Second
	}
	start, length := o.startOf(r), r.duration+r.jobDone.Sub(r.jobMade)+prompt+slow
	r.until = start.Add(length)
	switch {
	case !slices.Equal(usersIn(e.New.Object, "subjects"), []string{r.user}):
		o.report("RoleBinding %s is not for %s", r.name, r.user)
	case start.IsZero() || start.After(e.At) || r.jobDone.IsZero():
		o.report("request %s of %s is granted before its startTime %s or its timer %s", r.name, r.tenant, start, r.jobDone)
	case r.grantable.IsZero() || !r.isGrantable && e.At.Sub(r.grantable) > old:
		o.report("request %s of %s is granted, but it may not be; it last might at %s", r.name, r.tenant, r.grantable)
	case r.isOver:
		o.report("request %s of %s is granted, but was over at %s", r.name, r.tenant, r.ended)
	case r.wasGiven && slow == 0:
		o.report("request %s of %s is granted twice", r.name, r.tenant)
	}
	r.isInForce, r.wasGiven = true, true
}

// startOf returns when the operator says that it has begun to grant a request.
func (o *Requests) startOf(r *record) time.Time {
	request := o.server.Kind(domain, "sudorequests").Find(r.tenant, r.name)
	if request == nil {
		return time.Time{}
	}
	text, _, _ := unstructured.NestedString(request.Object, "status", "startTime")
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// checkGranted finds requests that should be in force, where all has worked for a while.
func (o *Requests) checkGranted() {
	now := o.server.Now()
	worked := later(o.OperatorSince, o.ManagerSince)
	if o.OperatorSince.IsZero() || o.ManagerSince.IsZero() || now.Sub(worked) < granting {
		return
	}
	for _, r := range o.records {
		// Of a start in troubled times, the time may be over before the right was given.
		if r.wasGiven || r.isDoubtful || !r.isGrantable || now.Sub(r.grantable) < granting ||
			!r.started.IsZero() && r.started.Before(worked) {
			continue
		}
		r.isDoubtful = true // one report is enough
		o.report("request %s of %s in %s may be granted since %s, and is not", r.name, r.user, r.tenant, r.grantable.Format(time.StampMilli))
	}
}
