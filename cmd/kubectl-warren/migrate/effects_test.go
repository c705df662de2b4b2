package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

func (s *site) gaps() (what []string) {
	for _, gap := range s.plan().Gaps {
		what = append(what, gap.What)
	}
	return what
}

// withObjects adds objects to a site's first kind, Secrets.
func (s *site) withObjects(objects ...*metav1.PartialObjectMetadata) *site {
	s.Kinds[0].Objects = append(s.Kinds[0].Objects, objects...)
	return s
}

func TestObjectsThatHNCNeverCopies(t *testing.T) {
	for name, c := range map[string]struct {
		mode copies.KindMode
		hnc  string
		want string
	}{"All": {copies.All, hncPropagate, "none"}, "OptIn": {copies.OptIn, hncPropagate, ""}} {
		t.Run("MIG-P7 an object that HNC never copies gets propagate=none in a kind of mode All, no label in mode OptIn, "+
			"and no copies: "+name, func(t *testing.T) {
			s := hncSite(c.mode, c.hnc).withObjects(object(secrets, "org", "rancher", "cattle.io/creator", "norman"),
				object(secrets, "org", "sh.helm.release.v1.app.v1", "owner", "helm"),
				object(secrets, "org", "described", "@openshift.io/description", "x"))
			for _, n := range s.plan().NewCopies {
				if n.Name != "some" { // the Secret that HNC has not copied everywhere in this site
					t.Errorf("copied anew: %+v", n)
				}
			}
			s.apply(t, Finish, s.plan, 1000)
			for _, name := range []string{"rancher", "sh.helm.release.v1.app.v1", "described"} {
				if got := s.keys()["Secret org/"+name][v1alpha1.LabelPropagate]; got != c.want {
					t.Errorf("%s: propagate is %q, want %q", name, got, c.want)
				}
			}
		})
	}
}

func TestFlagsOfHNC(t *testing.T) {
	t.Run("MIG-P7 the flags of HNC decide which objects and namespaces are left out; "+
		"the plan names keys that Warren's configuration lacks", func(t *testing.T) {
		settings, err := settingsOfHNC([]Deployment{{PartialObjectMetadata: object(schema.GroupVersionKind{Kind: "Deployment"}, "hnc-system",
			"hnc"), Args: []string{"/manager",
			"--nopropagation-label=keep=here", "-excluded-namespace", "apart", "--included-namespace-regex=[a-z]+", "--unpropagated-label=l",
			"--unpropagated-annotation=a"}}})
		if err != nil {
			t.Fatal(err)
		}
		if !settings.neverCopies(object(secrets, "org", "x", "keep", "here")) ||
			settings.neverCopies(object(secrets, "org", "x", "keep", "off")) {
			t.Error("--nopropagation-label")
		}
		if !settings.leavesAlone("apart") || !settings.leavesAlone("a1") || settings.leavesAlone("org") {
			t.Error("--excluded-namespace, --included-namespace-regex")
		}
		e := newEmptyEstate()
		e.compareFlagsOfHNC(settings, &config.OperatorConfiguration{})
		if len(e.Gaps) != 2 || e.Gaps[0].What != "flag --unpropagated-label=l" || e.Gaps[1].What != "flag --unpropagated-annotation=a" {
			t.Errorf("gaps: %v", e.Gaps)
		}
		if _, err := settingsOfHNC([]Deployment{{PartialObjectMetadata: namespace("x"),
			Args: []string{"--included-namespace-regex=("}}}); err == nil {
			t.Error("a regular expression that is none")
		}
	})
}

func TestWhatWarrenDoesBesideTheSteps(t *testing.T) {
	t.Run("MIG-P8 the plan names copies that HNC has not made, and each inherited key that changes, "+
		"with both values and the namespaces", func(t *testing.T) {
		s := hncSite(copies.All, "")
		s.Rules.InheritLabel = func(key string) bool { return strings.HasPrefix(key, "pod-security") || key == "zone" }
		s.Namespaces["org"].Labels["pod-security.kubernetes.io/enforce"] = "baseline"
		s.Namespaces["org"].Labels["zone"] = "a"
		s.Namespaces["svc"].Labels["zone"] = "b"
		s.Namespaces["team"].Labels["zone"] = "a"
		s.withObjects(object(secrets, "org", "fresh"), object(secrets, "svc", "fresh"))
		plan := s.plan()
		i := slices.IndexFunc(plan.NewCopies, func(n NewCopies) bool { return n.Name == "fresh" })
		if i < 0 || !cmp.Equal(plan.NewCopies[i], NewCopies{"Secret", "fresh", "org", []string{"team"}}) {
			t.Errorf("new copies: %v", plan.NewCopies)
		}
		baseline, a, b := "baseline", "a", "b"
		want := []KeyChange{{"pod-security.kubernetes.io/enforce", nil, &baseline, []string{"svc", "team"}}, {"zone", &b, &a, []string{"svc"}}}
		if diff := cmp.Diff(want, plan.KeyChanges); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if gaps := s.gaps(); !slices.Contains(gaps, "objects of secrets") {
			t.Errorf("gaps: %v", gaps)
		}
	})
}

func TestPlacesThatAdmissionWouldRefuse(t *testing.T) {
	now := metav1.Now()
	for name, change := range map[string]func(*site){
		"a protected parent":    func(s *site) { s.Namespaces["org"].Labels[v1alpha1.LabelProtected] = "true" },
		"a terminating parent":  func(s *site) { s.Namespaces["org"].DeletionTimestamp = &now },
		"a parent of the rules": func(s *site) { s.Rules.ProtectedName = func(name string) bool { return name == "org" } },
	} {
		t.Run("MIG-P9 no namespace joins below a protected or terminating one, and the plan names those left out: "+name, func(t *testing.T) {
			s := hncSite(copies.All, hncPropagate)
			change(s)
			for _, step := range s.plan().Steps {
				if step.Phase == Namespaces || step.Phase == Hierarchy {
					t.Errorf("planned: %s of %s", step.Verb, step.Object)
				}
			}
			for _, want := range []string{"Namespace team", "Namespace svc"} {
				if gaps := s.gaps(); !slices.Contains(gaps, want) {
					t.Errorf("%s isn't named: %v", want, gaps)
				}
			}
		})
	}
}

func TestGreatestDepthCanNotBeRaised(t *testing.T) {
	size := treeSize{depth: forest.MaxDepth + 1}
	found := size.exceededLimits(v1alpha1.Limits{})
	if len(found) != 1 || strings.Contains(found[0], "raise") || !strings.Contains(found[0], "place namespaces nearer to the root") {
		t.Errorf("%q", found)
	}
}

func TestLimitsThatTreesWouldExceed(t *testing.T) {
	one := int32(1)
	for name, limits := range map[string]v1alpha1.Limits{"subNamespaces 2": {SubNamespaces: &one}, "depth 2": {Depth: &one},
		"copies 3": {Copies: &one}} {
		t.Run("MIG-P9 a tree that would exceed a limit is an error, which names the tree and the limit to raise: "+name, func(t *testing.T) {
			s := hncSite(copies.All, hncPropagate)
			s.Rules.Limits = limits
			plan := s.plan()
			if err := plan.checkNoLimitExceeded(); err == nil ||
				!strings.Contains(err.Error(), "nothing was written, because tree org would have "+name+
					", and at most 1 is allowed: raise spec.limits.") ||
				!strings.Contains(err.Error(), " in the configuration; then give the command again") {
				t.Errorf("%v", err)
			}
			if !slices.Contains(s.gaps(), "tree org") {
				t.Errorf("gaps: %v", s.gaps())
			}
		})
	}
}
