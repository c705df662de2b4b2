package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

const (
	live    = false
	restart = true
)

// everyKey is the table of subnamespaces.md 2.9: each key, and whether a change needs a restart.
var everyKey = map[string]bool{
	"apiVersion": live, "kind": live,
	"inheritance.labels": live, "inheritance.annotations": live, "inheritance.undelegated": live,
	"subNamespaces.labels": live, "subNamespaces.annotations": live, "subNamespaces.namingPolicies": live,
	"subNamespaces.limits.subNamespaces": live, "subNamespaces.limits.depth": live, "subNamespaces.limits.copies": live, "subNamespaces.limits.bytes": live,
	"subNamespaces.allowCascadingDeletion": live,
	"protectedNamespaces":                  live, "acceptRemovals": live,
	"tenants.reservedNames": live, "tenants.maxPerCreator": live,
	"access.userClusterRole": live, "sudo.mode": live,
	"propagation.kinds": live, "propagation.bindOwnRole": restart, "propagation.excludedLabels": live, "propagation.excludedAnnotations": live,
	"propagation.neverPropagate": live, "propagation.scrub.interval": live, "propagation.scrub.objectsPerSecond": live,
	"propagation.retry.min": live, "propagation.retry.max": live, "propagation.generators": live,
	"distribution.kinds": live, "distribution.allowOverwrite": live, "distribution.maxObjectBytes": live, "distribution.maxTotalBytes": live,
	"informers.verifyInterval": restart, "informers.idleGrace": restart, "informers.degradedAfter": restart,
	"informers.maxInformers": restart, "informers.maxNamespaces": restart,
	"billing.driver": restart, "billing.clusterID": restart, "billing.table": restart, "billing.schema": restart,
	"billing.flushInterval": restart, "billing.resyncInterval": restart,
	"billing.batch.maxRows": restart, "billing.batch.maxBytes": restart, "billing.outbox.path": restart, "billing.outbox.maxRows": restart,
	"billing.sqlite.path": restart, "billing.postgres.dsnFile": restart,
	"billing.bigquery.project": restart, "billing.bigquery.dataset": restart, "billing.bigquery.location": restart,
	"billing.bigquery.credentialsFile": restart, "billing.bigquery.endpoint": restart, "billing.bigquery.statementTimeout": restart,
	"billing.bigquery.maximumBytesBilled": restart,
	"billing.usage.enabled":               restart, "billing.usage.gpus": restart,
	"billing.namespaceLabels.costCenter": live, "billing.namespaceLabels.owner": live,
	"billing.defaults": live, "billing.required": live, "billing.costCenterPattern": live,
	"controllers": restart, "clientConnection.qps": restart, "clientConnection.burst": restart, "concurrency": restart,
	"featureGates": restart,
}

// leaves returns the path and index of each field of a configuration that is no section of its own.
func leaves(t reflect.Type, path string, index []int) map[string][]int {
	found := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		at := append(append([]int{}, index...), f.Index...)
		switch leaf := f.Type == reflect.TypeFor[metav1.Duration]() || f.Type == reflect.TypeFor[resource.Quantity](); {
		case f.Type.Kind() == reflect.Struct && !leaf:
			for p, i := range leaves(f.Type, path+name+".", at) {
				found[p] = i
			}
		default:
			found[path+name] = at
		}
	}
	return found
}

// change gives a field a value that is not its default.
func change(t *testing.T, field reflect.Value) {
	t.Helper()
	switch value := field.Addr().Interface().(type) {
	case *metav1.Duration:
		value.Duration += time.Hour
		return
	case *resource.Quantity:
		value.Add(resource.MustParse("1"))
		return
	case *map[string]bool:
		*value = map[string]bool{config.PropagateGenerated: true}
		return
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Float32:
		field.SetFloat(field.Float() + 1)
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	case reflect.Slice:
		field.Set(reflect.Append(field, reflect.New(field.Type().Elem()).Elem()))
	default:
		t.Fatalf("no way to change a %s", field.Type())
	}
}

func TestRestartRequiredForEveryKey(t *testing.T) {
	known := leaves(reflect.TypeFor[config.OperatorConfiguration](), "", nil)
	for path := range everyKey {
		if _, ok := known[path]; !ok {
			t.Errorf("%s stands in the specification and not in the types", path)
		}
	}
	for path, index := range known {
		t.Run(path, func(t *testing.T) {
			needsRestart, specified := everyKey[path]
			if !specified {
				t.Fatal("stands in the types and not in the specification")
			}
			running, file := config.Default(), config.Default()
			change(t, reflect.ValueOf(file).Elem().FieldByIndex(index))

			var want []string
			wantInForce := file
			if needsRestart {
				want = []string{path}
				wantInForce = running
			}
			if diff := cmp.Diff(want, config.RestartRequired(running, file)); diff != "" {
				t.Errorf("RestartRequired: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(wantInForce, config.InForce(running, file)); diff != "" {
				t.Errorf("InForce: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(config.Default(), running); diff != "" {
				t.Errorf("what runs was changed: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestScopeNeedsARestart(t *testing.T) {
	running, file := config.Default(), config.Default()
	kinds := file.Propagation.Kinds
	kinds[2].Scope = config.ScopeNamespaces
	file.Propagation.Kinds = append(kinds, config.PropagatedKind{Group: "apps", Kind: "Deployment", Mode: config.ModeAll, Scope: config.ScopeCluster})

	if diff := cmp.Diff([]string{"propagation.kinds[].scope"}, config.RestartRequired(running, file)); diff != "" {
		t.Errorf("one kind has another scope: -want, +got:\n%s", diff)
	}
	want := config.Default().Propagation.Kinds
	want = append(want, config.PropagatedKind{Group: "apps", Kind: "Deployment", Mode: config.ModeAll, Scope: config.ScopeCluster})
	if diff := cmp.Diff(want, config.InForce(running, file).Propagation.Kinds); diff != "" {
		t.Errorf("a kind that runs keeps its scope, one that joins has its own: -want, +got:\n%s", diff)
	}
	if file.Propagation.Kinds[2].Scope != config.ScopeNamespaces {
		t.Error("InForce changed the file's configuration")
	}
}
