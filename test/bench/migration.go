package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// migrationRate is the least quotient that is allowed: the migration's writes a second, divided by the floor's. The floor patches as many
// objects, reads nothing and waits for nothing.
const migrationRate = 0.5

// migrationBench measures a move from HNC.
type migrationBench struct{ *bench }

// measureMigration measures how a root with children and copies moves from HNC: kubectl warren migrate hnc --apply, which stops before the
// last step, and then --finish. HNC itself doesn't run: only its CRDs and objects are there.
func measureMigration(ctx context.Context, on *bench) ([]result, error) {
	b := migrationBench{on}
	if err := b.plantPeer(ctx); err != nil {
		return nil, err
	}
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	before, err := b.secretUIDs(ctx)
	if err != nil {
		return nil, err
	}
	floor, err := b.patchCopies(ctx)
	if err != nil {
		return nil, err
	}
	apply, err := b.migrate(ctx, "--apply")
	if err != nil {
		return nil, err
	}
	finish, err := b.migrate(ctx, "--finish")
	if err != nil {
		return nil, err
	}
	after, err := b.secretUIDs(ctx)
	if err != nil {
		return nil, err
	}
	copies := b.scale.sources * b.scale.children
	kept := 0
	for name, uid := range before {
		if after[name] == uid {
			kept++
		}
	}
	least := copies + b.scale.sources + b.scale.children + 1 // copies, sources, children and the root
	rate := (float64(apply.writes) / apply.took.Seconds()) / (float64(copies) / floor.Seconds())
	return []result{
		{id: "migration", counted: true, passed: apply.writes <= least+1 && apply.deletes+finish.deletes == 0 && kept == len(before),
			text: fmt.Sprintf("of %d namespaces, %d copies: writes until the last step %d, at least %d and the record; deletes %d; %d of %d "+
				"Secrets keep their UIDs",
				b.scale.children+1, copies, apply.writes, least, apply.deletes+finish.deletes, kept, len(before))},
		{id: "migration", passed: rate >= migrationRate,
			text: fmt.Sprintf("floor %d patches %.1fs; until the last step %d writes %.1fs: rate %.2f of the floor's, least %.2f",
				copies, floor.Seconds(), apply.writes, apply.took.Seconds(), rate, migrationRate)},
		{id: "migration", counted: true, passed: finish.writes <= b.scale.sources+1 && finish.operators <= copies+b.scale.children,
			text: fmt.Sprintf("last step: %d writes, and %d of the operator, in %.1fs", finish.writes, finish.operators, finish.took.Seconds())},
	}, nil
}

// plantPeer makes what HNC leaves: a root, its children, the sources in the root, and a copy of each in every child.
func (b migrationBench) plantPeer(ctx context.Context) error {
	folder, err := devcluster.Root()
	if err != nil {
		return err
	}
	definitions := filepath.Join(folder, "test/integration/trees/testdata/hnc-crds.yaml")
	if _, problems, code := b.Kubectl(ctx, controlplane.Admin, "apply", "-f", definitions); code != 0 {
		return fmt.Errorf("applying HNC's definitions: %s", problems)
	}
	if err := b.Admin().Create(ctx, build.Namespace(root)); err != nil {
		return err
	}
	settings := peerObject("HNCConfiguration", "", "config",
		map[string]any{"resources": []any{map[string]any{"resource": "secrets", "mode": "AllowPropagate"}}})
	if err := waitFor(ctx, "HNC's definitions", func(ctx context.Context) (bool, error) {
		return b.Admin().Create(ctx, settings.DeepCopy()) ==
			nil, nil
	}); err != nil {
		return err
	}
	for i := range b.scale.sources {
		s := newSecret(fmt.Sprintf("moved-%d", i), "a")
		s.Annotations = map[string]string{"propagate.hnc.x-k8s.io/all": "true"}
		if err := b.Admin().Create(ctx, s); err != nil {
			return err
		}
	}
	return inParallel(ctx, b.scale.children, func(ctx context.Context, i int) error {
		if err := b.Admin().Create(ctx, build.Namespace(childName(i))); err != nil {
			return err
		}
		if err := b.Admin().Create(ctx, peerObject("HierarchyConfiguration", childName(i), "hierarchy", map[string]any{"parent": root})); err !=
			nil {
			return err
		}
		for j := range b.scale.sources {
			s := newSecret(fmt.Sprintf("moved-%d", j), "a")
			s.Namespace, s.Labels = childName(i), map[string]string{"hnc.x-k8s.io/inherited-from": root}
			if err := b.Admin().Create(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func peerObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "hnc.x-k8s.io/v1alpha2", "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// patchCopies is the floor: it patches one label and one annotation of each copy, similar to the migration's, and returns the time.
func (b migrationBench) patchCopies(ctx context.Context) (time.Duration, error) {
	c, err := b.floorClient(controlplane.Admin)
	if err != nil {
		return 0, err
	}
	body := []byte(`{"metadata":{"labels":{"bench.example/inherited-from":"` + root +
		`"},"annotations":{"bench.example/source-hash":"create:0123456789abcdef:00000000000000000000000000000000"}}}`)
	begin := time.Now()
	err = inParallel(ctx, b.scale.sources*b.scale.children, func(ctx context.Context, i int) error {
		_, err := c.Patch(types.MergePatchType).Namespace(childName(i%b.scale.children)).Resource("secrets").
			Name(fmt.Sprintf("moved-%d", i/b.scale.children)).
			Body(body).SetHeader("Accept", accept).Do(ctx).Raw()
		return err
	})
	return time.Since(begin), err
}

// moved is what a command of the migration has cost.
type moved struct {
	took time.Duration
	// writes are the admin's writes, operators the operator's writes to Secrets and Namespaces, both without deletions. deletes are all
	// deletions by both.
	writes, operators, deletes int
}

func (b migrationBench) migrate(ctx context.Context, step string) (moved, error) {
	mark, err := b.Mark(ctx)
	if err != nil {
		return moved{}, err
	}
	begin := time.Now()
	out, problems, code := b.Kubectl(ctx, controlplane.Admin, "warren", "migrate", "hnc", step, "--yes", "--peer-namespace=")
	m := moved{took: time.Since(begin)}
	if code != 0 {
		return m, fmt.Errorf("migrate hnc %s: %s%s", step, out[max(0, len(out)-300):], problems)
	}
	if err := b.waitForIdle(ctx); err != nil {
		return m, err
	}
	all, err := b.Requests(ctx, mark)
	for _, r := range all {
		switch {
		case !r.IsWrite() || r.User != operatorUser && r.User != controlplane.Admin:
		case r.Verb == "delete" || r.Verb == "deletecollection":
			m.deletes++
		case r.User == controlplane.Admin:
			m.writes++
		case r.Resource == "secrets" || r.Resource == "namespaces":
			m.operators++
		}
	}
	return m, err
}

// secretUIDs returns the UIDs of the copies, those of HNC and those of Warren, by namespace and name.
func (b migrationBench) secretUIDs(ctx context.Context) (map[string]types.UID, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := b.Admin().List(ctx, list); err != nil {
		return nil, err
	}
	found := map[string]types.UID{}
	for i := range list.Items {
		if s := &list.Items[i]; s.Labels["hnc.x-k8s.io/inherited-from"] != "" || s.Labels[v1alpha1.LabelInheritedFrom] != "" {
			found[client.ObjectKeyFromObject(s).String()] = s.UID
		}
	}
	return found, nil
}
