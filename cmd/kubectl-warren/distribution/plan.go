package distribution

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Step is one action and the namespaces in which the operator would take it. The steps conflict and unchanged are the
// namespaces without an action.
type Step struct {
	What       string   `json:"what"`
	Namespaces []string `json:"namespaces"`
}

// verbs are the steps in the order in which they are shown.
var verbs = []struct {
	what  string
	verbs []distribute.Verb
}{
	{"create", []distribute.Verb{distribute.Create}},
	{"update", []distribute.Verb{distribute.Update, distribute.Remark}},
	{"adopt if identical", []distribute.Verb{distribute.Examine, distribute.Adopt}},
	{"overwrite", []distribute.Verb{distribute.Overwrite}},
	{"delete", []distribute.Verb{distribute.Delete}},
	{"hand back", []distribute.Verb{distribute.HandBack}},
	{"allow changes by users", []distribute.Verb{distribute.Unlock}},
}

// Plan describes what the operator would do for rd now, by the operator's own rules. It reads namespaces, and the
// metadata of all objects with the kind and name of rd's copies. It doesn't know the operator's configuration: it
// assumes that this allows the kind and conflictPolicy Overwrite, and protects no other namespaces. said are warnings
// about spec.targets.
func Plan(ctx context.Context, api client.Reader,
	rd *v1alpha1.ResourceDistribution) (said []string, all []Step, err error) {
	template, err := distribute.ReadTemplate(rd.Spec.Resource.Raw)
	if err != nil {
		return nil, nil, err
	}
	settings := distribute.Settings{AllowOverwrite: true, Protected: isProtected}
	settings.Kinds = append(settings.Kinds, template.Kind)
	d := distribute.Read(rd, settings)
	if d.Problem != "" {
		return nil, nil, fmt.Errorf("%s", d.Why)
	}
	namespaces := metadataList("v1", "Namespace")
	if err := api.List(ctx, namespaces); err != nil {
		return nil, nil, err
	}
	f := forest.New(forest.Rules{ProtectedName: isProtected})
	for i := range namespaces.Items {
		f = f.WithNamespace(forest.NamespaceOf(&namespaces.Items[i]))
	}
	objects := metadataList(template.Kind.GroupVersion().String(), template.Kind.Kind)
	if err := api.List(ctx, objects, client.MatchingFields{"metadata.name": template.Name}); err != nil {
		return nil, nil, err
	}
	reader, targets := distribute.NewReader(), map[string]distribute.Target{}
	for i := range objects.Items {
		one := &objects.Items[i]
		t := distribute.Target{}
		if one.Labels[v1alpha1.LabelDistributedBy] != "" {
			t.Copy = reader.Copy(template.Slot(one.Namespace), one)
			t.Copy.Known = true
		} else {
			mode := one.Labels[v1alpha1.LabelPropagate]
			t.Obstacle = distribute.ReadObstacle(one, mode != "" && mode != v1alpha1.ModeNone)
		}
		targets[one.Namespace] = t
	}
	return describeReach(rd, d, f), buildSteps(d, f, targets), nil
}

// describeReach returns a sentence if spec.targets selects every namespace without allNamespaces, and one about names
// that another namespace has taken.
func describeReach(rd *v1alpha1.ResourceDistribution, d *distribute.Distribution, f *forest.Snapshot) (all []string) {
	if d.Targets.Everybody() && rd.Spec.Targets.AllNamespaces == nil {
		count := 0
		for namespace := range f.All() {
			if d.Choose(f, namespace, isProtected) == distribute.Chosen {
				count++
			}
		}
		all = append(all, d.Targets.DescribeEverybody(count))
	}
	if replaced := d.Named.Replaced(f); len(replaced) > 0 {
		all = append(all, "these namespaces were deleted and created again, and get no copy: "+strings.Join(replaced, ", "))
	}
	return all
}

func buildSteps(d *distribute.Distribution, f *forest.Snapshot, targets map[string]distribute.Target) []Step {
	by := map[distribute.Verb][]string{}
	var conflicts, unchanged []string
	for namespace := range f.All() {
		t := targets[namespace]
		t.Namespace, t.Choice = namespace, d.Choose(f, namespace, isProtected)
		a := d.Plan(t, true)
		switch {
		case a.Verb != distribute.Nothing:
			by[a.Verb] = append(by[a.Verb], namespace)
		case a.State == distribute.InConflict:
			conflicts = append(conflicts, fmt.Sprintf("%s (%s)", namespace, strings.TrimSpace(string(a.Conflict.Reason)+" "+a.Conflict.By)))
		case a.State == distribute.Current:
			unchanged = append(unchanged, namespace)
		}
	}
	all := []Step{}
	add := func(what string, namespaces []string) {
		if slices.Sort(namespaces); len(namespaces) > 0 {
			all = append(all, Step{what, namespaces})
		}
	}
	for _, one := range verbs {
		var namespaces []string
		for _, verb := range one.verbs {
			namespaces = append(namespaces, by[verb]...)
		}
		add(one.what, namespaces)
	}
	add("conflict", conflicts)
	add("unchanged", unchanged)
	return all
}

// isProtected reports whether a namespace is never a target, whatever the configuration is. It assumes that the
// operator runs in warren-system.
func isProtected(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == "warren-system"
}

// plan is what Plan returns, as text.
type plan struct {
	policy   v1alpha1.ConflictPolicy
	warnings []string
	steps    []Step
}

// Write writes the warnings, and a line for each step with at most 50 names. A last line describes what a conflict
// holds back.
func (p plan) Write(w io.Writer) error {
	var text strings.Builder
	for _, warning := range p.warnings {
		text.WriteString("Warning: " + warning + "\n")
	}
	held := false
	for _, step := range p.steps {
		const most = 50
		line := strings.Join(step.Namespaces[:min(most, len(step.Namespaces))], ", ")
		if more := len(step.Namespaces) - most; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(&text, "%s %d: %s\n", step.What, len(step.Namespaces), line)
		held = held || step.What == "conflict"
	}
	if len(p.steps) == 0 {
		text.WriteString("spec.targets selects no namespace\n")
	}
	if held && (p.policy == "" || p.policy == v1alpha1.ConflictFail || p.policy == v1alpha1.ConflictAdoptIdentical) {
		text.WriteString("Before the first copies, and after a change of targets, the operator creates no copy while there is a conflict.\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}
