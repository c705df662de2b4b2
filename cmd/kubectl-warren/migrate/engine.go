package migrate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Engine is the running part of the other operator.
type Engine struct {
	Deployments []Deployment
	Webhooks    []Webhooks
	// Grants are bindings by which the peer gives users broad rights that only its webhooks restrict, GrantRoles the
	// ClusterRoles that they bind.
	Grants     []Grant
	GrantRoles []string
	// OldStored are CustomResourceDefinitions that may have objects stored in old versions, by name, with the version in
	// which they are to be stored.
	OldStored map[string]string
	// Record is what earlier runs have noted; nil where there is none yet.
	Record *Record
	// RecordAt names the ConfigMap that holds the record. RecordUID and RecordVersion guard writes to it.
	RecordAt                 Object
	RecordUID, RecordVersion string
}

// Deployment is a Deployment of the other operator.
type Deployment struct {
	*metav1.PartialObjectMetadata
	// Wanted is the number of replicas asked for, Running the number of existing Pods, including those that are being
	// deleted.
	Wanted, Running int64
	// Args are the commands and arguments of its containers.
	Args []string
}

// Webhooks is a configuration of webhooks that the other operator serves.
type Webhooks struct {
	*metav1.PartialObjectMetadata
	// Policies are the failure policies, in the order of the webhooks, AtRest those that they have while the peer is at
	// rest.
	Policies, AtRest []string
	// Guards are, in the same order, the names of the webhooks that are asked about Namespaces, "" for others. The
	// webhooks that are asked about Namespaces restrict what grants allow.
	Guards []string
	// Conditions state, in the same order, whether restCondition restricts the webhooks; no restriction is wanted if the
	// peer sets no finalizers.
	Conditions []condition
}

// Record is what an undo needs. Finished reports that the migration can't be undone any more.
type Record struct {
	Finished bool `json:"finished"`
	// Replicas and Policies are the replicas and failure policies before the migration, by object.
	Replicas map[string]int64    `json:"replicas,omitempty"`
	Policies map[string][]string `json:"policies,omitempty"`
	// Subjects are those whom the peer's bindings named before, by object.
	Subjects map[string][]any `json:"subjects,omitempty"`
	// Finalizers are the peer's finalizers on its objects before the migration, by object.
	Finalizers map[string][]string `json:"finalizers,omitempty"`
	// Callers are the users who have run this migration: an LNamespace that one of them made counts as made by the
	// migration.
	Callers []string `json:"callers,omitempty"`
	// Places are the places to which the user has agreed: by UID of the namespace, the UID of its parent or template, or
	// the name of that parent or template if it did not exist yet; "" if there is neither. If the peer's keys state
	// another place later, it is refused.
	Places map[string]string `json:"places,omitempty"`
	// Inherited are the keys that namespaces inherit because of the migration, with the values before it.
	Inherited []KeyChange `json:"inherited,omitempty"`
	// Before are the values that Warren's keys had before the migration on objects that it may write, by object: an undo
	// restores them. An object that existed where the migration would have made one has an entry, maybe an empty one.
	Before map[string]map[string]string `json:"before,omitempty"`
}

func (r *Record) isMigrationFinished() bool { return r != nil && r.Finished }

// The failure policies of a webhook.
const (
	failurePolicyIgnore = "Ignore"
	failurePolicyFail   = "Fail"
)

// firstRunningDeployment names the first Deployment that has a Pod left, or "".
func (e Engine) firstRunningDeployment() string {
	for _, d := range e.Deployments {
		if d.Running > 0 {
			return objectFromMetadata(d.PartialObjectMetadata).String()
		}
	}
	return ""
}

// isScaledDown reports whether no Deployment asks for a replica.
func (e Engine) isScaledDown() bool {
	return !slices.ContainsFunc(e.Deployments, func(d Deployment) bool { return d.Wanted > 0 })
}

// planPeerShutdown stops the other operator: it scales the Deployments to 0, and sets the webhooks' failure policy to
// Ignore, except for those on the peer's own kinds, which get Fail. It also removes the subjects of grants, and the
// peer's finalizers.
func (p *planner) planPeerShutdown() {
	if p.Peer.Record == nil {
		p.planRecordChange(Rest, func(*Record) {})
	}
	guards, others, deployments := 1, 1, 2
	if p.Peer.hasAnyGrants() {
		guards, others, deployments = restGrants+1, restOthers, restOthers-1
	}
	for _, w := range p.Peer.Webhooks {
		atFirst, inTheEnd := w.splitByGuardWave()
		if guards == others {
			atFirst, inTheEnd = w.AtRest, nil
		}
		p.draft.addWebhookStep(Rest, others, w, atFirst, true)
		if guards != others {
			p.draft.addWebhookStep(Rest, guards, w, inTheEnd, true)
		}
	}
	for _, d := range p.Peer.Deployments {
		p.draft.addScaleStep(Rest, deployments, d, 0)
	}
	p.withholdGrants()
	p.planFinalizers()
}

// planRecordChange adds the step that changes the record. The first record describes the other operator and the cluster
// before the migration.
func (p *planner) planRecordChange(phase Phase, change func(*Record)) {
	r := p.Peer.Record
	verb, body := Patch, map[string]any{}
	if r == nil {
		r = &Record{Replicas: map[string]int64{}, Policies: map[string][]string{}}
		for _, d := range p.Peer.Deployments {
			r.Replicas[objectFromMetadata(d.PartialObjectMetadata).String()] = d.Wanted
		}
		for _, w := range p.Peer.Webhooks {
			r.Policies[objectFromMetadata(w.PartialObjectMetadata).String()] = w.Policies
		}
		r.Subjects, r.Finalizers = p.Peer.subjectsOfGrants(), p.peerFinalizers()
		r.Inherited = p.findKeyChanges()
		r.Before, r.Places = p.valuesBefore(), p.agreedPlaces(p.Cluster)
		if phase == Rest {
			at := p.Peer.RecordAt
			verb, body = Create, map[string]any{"apiVersion": at.APIVersion, "kind": at.Kind,
				"metadata": map[string]any{"namespace": at.Namespace, "name": at.Name}}
		}
	}
	noted := *r
	noted.Callers = addCallerOnce(r.Callers, p.Caller)
	change(&noted)
	body["binaryData"] = map[string]any{recordKey: noted.packToJSON()}
	p.draft.steps = append(p.draft.steps, Step{Phase: phase, Verb: verb, Object: p.Peer.RecordAt, Body: body, uid: p.Peer.RecordUID,
		version: p.Peer.RecordVersion})
}

// addCallerOnce returns callers with caller added. caller is "" for peers without tenants, whose migration doesn't use
// it.
func addCallerOnce(callers []string, caller string) []string {
	if caller == "" || slices.Contains(callers, caller) {
		return callers
	}
	return append(slices.Clone(callers), caller)
}

// recordKey is the key of the record in its ConfigMap. The record is compressed: for 10,000 namespaces it would
// otherwise exceed 1 MiB, the limit of a ConfigMap.
const recordKey = "record.json.gz"

func (r Record) packToJSON() []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(w).Encode(r), w.Close()); err != nil {
		panic(err) // a struct of numbers and strings, written into memory
	}
	return packed.Bytes()
}

// unpackRecord reads what packToJSON has written.
func unpackRecord(packed []byte) (*Record, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	record := &Record{}
	return record, json.NewDecoder(r).Decode(record)
}
