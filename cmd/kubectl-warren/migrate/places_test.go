package migrate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// While the other operator is stopped, no webhook checks its keys, so whoever owns a namespace may write them.
func TestPlacesThatTheUserHasNotSeen(t *testing.T) {
	for name, intrude := range map[string]func(*site){
		"HNC's annotation": func(s *site) { s.Namespaces["plain"].Annotations[hncSubnamespaceOf] = "org" },
		"a root that moves": func(s *site) {
			s.Namespaces["other"].Annotations[hncSubnamespaceOf] = "team"
		},
		"a parent of the same name": func(s *site) { s.Namespaces["org"].UID = "another" },
	} {
		for _, recorded := range []bool{false, true} {
			t.Run(fmt.Sprintf("MIG-S1 a place that the user has not seen ends the run, and the namespace does not join: %s, "+
				"record %t", name, recorded), func(t *testing.T) {
				s := hncSite(copies.All, hncPropagate)
				s.Namespaces["other"] = namespace("other")
				s.Namespaces["below"] = namespace("below", "@"+hncSubnamespaceOf, "other")
				s.Agreed = s.plan().agreed
				if recorded {
					s.apply(t, Rest, s.plan, 1)
				}
				intrude(s)
				plan := s.plan()
				if err := plan.checkPlacesAgreed(hncPeer); err == nil || !strings.Contains(err.Error(), "migrate hnc --undo") {
					t.Errorf("the run goes on: %v", err)
				}
				for _, step := range plan.Steps {
					if step.Phase == Namespaces && slices.Contains(plan.refused, step.Object.Name) {
						t.Errorf("%s joins", step.Object)
					}
				}
			})
		}
	}
}

func TestRecordOfAgreedPlacesFitsIntoAConfigMap(t *testing.T) {
	t.Run("MIG-S2 the record of 10,000 namespaces that have HierarchyConfigurations fits into one ConfigMap", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		uid := func() string {
			return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12),
				random.Int64N(1<<48))
		}
		r := Record{Places: map[string]string{}, Before: map[string]map[string]string{}}
		parent := uid()
		for i := range 10_000 {
			if i%10 == 0 {
				parent = uid()
			}
			r.Places[uid()] = parent
			r.Before[warrenObject("HierarchyConfiguration", fmt.Sprintf("namespace-%d", i), "hierarchy").
				idWithGroup()] = map[string]string{cascadingField: "false", labelsField: "cost,team", annotationsField: ""}
		}
		if size := len(r.packToJSON()) * 4 / 3; size > 900_000 {
			t.Errorf("%d bytes", size)
		}
		read, err := unpackRecord(r.packToJSON())
		if err != nil || len(read.Places) != 10_000 || len(read.Before) != 10_000 {
			t.Errorf("read back: %v, %v", read, err)
		}
	})
}

func TestJoinsAreToldByName(t *testing.T) {
	t.Run("MIG-P6 a table of the plan lists the namespaces that join a tree, by the name of their new parent", func(t *testing.T) {
		s := hncSite(copies.All, hncPropagate)
		s.Namespaces["org"].UID = types.UID("o")
		var out strings.Builder
		s.plan().writePlanTables(&out)
		for _, want := range []string{"(root or template)   org", "org                  team", "team                 svc"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing in:\n%s", want, out.String())
			}
		}
		s.Namespaces["org"].Labels[v1alpha1.LabelType] = "root"
		if joins := s.plan().Joins; len(joins) != 2 {
			t.Errorf("org has joined already: %v", joins)
		}
	})
}
