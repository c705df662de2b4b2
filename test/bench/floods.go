package main

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// floods are the ways in which a tenant may flood the operator, with nothing but what users and managers may do.
func floods() []*flood {
	return []*flood{
		{name: "1,000 Terminating Secrets in the way of copies", prepare: prepareHeld, begin: beginCopying, end: endHeld},
		{name: "500 sources with long selectors that match nothing", prepare: prepareChildren, begin: beginSelecting},
		{name: "20 Secrets of 1 MiB to 100 namespaces", prepare: prepareChildren, begin: beginLarge},
		{name: "1,000 copies that a policy refuses, each with a text of its own", prepare: prepareRefused, begin: beginCopying, end: endRefused},
		{name: "500 SubNamespaces for which there is no room, and five more a second", prepare: prepareFull, begin: beginWaiting,
			goOn: askForRoom, end: endWaiting},
		{name: "100 namespaces that ask for parents that don't exist", prepare: prepareChildren, begin: beginAsking, end: endAsking},
		{name: "labels of 200 SubNamespaces that change five times a second", prepare: prepareLabelled, goOn: relabel},
		{name: "a list of sudoers that changes five times a second", prepare: prepareSudoers, goOn: toggle},
		{name: "a label that 500 namespaces inherit changes five times a second", prepare: prepareInheriting, goOn: changeInherited, brief: true,
			probe: inheritedLabel},
		{name: "500 SubNamespaces at once", prepare: prepareRoot, begin: beginMaking, probe: child, end: endMaking},
	}
}

// inherited is a label that namespaces inherit by default, and whose value may be any version, such as v1.30.
const inherited = "pod-security.kubernetes.io/warn-version"

// setInherited sets the label of a namespace that all below it inherit.
func (f *flood) setInherited(ctx context.Context, namespace, value string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, inherited, value))
	return f.Admin().Patch(ctx, build.Namespace(namespace), patch)
}

func prepareInheriting(ctx context.Context, f *flood) error {
	if err := f.makeTree(ctx, f.root, f.child, f.size(500)); err != nil {
		return err
	}
	return f.waitForIdle(ctx)
}

func changeInherited(ctx context.Context, f *flood, n int) error {
	return f.setInherited(ctx, f.root, versionNumbered(n))
}

func prepareRoot(ctx context.Context, f *flood) error {
	return f.plantTenant(ctx, build.Tenant(f.root).Object())
}

// beginMaking returns when half of the SubNamespaces are made, so that the probes are timed beside the operator's work rather than after
// it.
func beginMaking(ctx context.Context, f *flood) error {
	made := make(chan error, 1)
	f.goOn = func(context.Context, *flood, int) error {
		select {
		case err := <-made:
			return err
		default:
			return nil
		}
	}
	if err := f.putSubs(ctx, 0, f.size(250)); err != nil {
		return err
	}
	go func() { made <- f.putSubs(ctx, f.size(250), f.size(500)) }()
	return nil
}

func endMaking(ctx context.Context, f *flood) error {
	if err := f.Admin().DeleteAllOf(ctx, &v1alpha1.SubNamespace{}, client.InNamespace(root)); err != nil {
		return err
	}
	return endWaiting(ctx, f)
}

// prepareChildren makes the root of a flood and a hundred namespaces below it.
func prepareChildren(ctx context.Context, f *flood) error {
	return f.makeTree(ctx, f.root, f.child, f.size(100))
}

func prepareHeld(ctx context.Context, f *flood) error {
	if err := prepareChildren(ctx, f); err != nil {
		return err
	}
	return f.inEach(ctx, f.size(100), 10, func(ctx context.Context, namespace string, i int) error {
		held := build.Held(build.Secret(namespace, fmt.Sprintf("flood-%d", i), "x"))
		if err := f.Admin().Create(ctx, held); err != nil {
			return err
		}
		return f.Admin().Delete(ctx, held)
	})
}

func beginCopying(ctx context.Context, f *flood) error { return f.putSources(ctx, 10, "x") }

func endHeld(ctx context.Context, f *flood) error {
	release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return f.inEach(ctx, f.size(100), 10, func(ctx context.Context, namespace string, i int) error {
		return f.Admin().Patch(ctx, build.Secret(namespace, fmt.Sprintf("flood-%d", i), ""), release)
	})
}

func beginSelecting(ctx context.Context, f *flood) error {
	return f.putSources(ctx, f.size(500), "x", v1alpha1.AnnotationSelect, longSelector())
}

func beginLarge(ctx context.Context, f *flood) error {
	return f.putSources(ctx, 20, strings.Repeat("x", 1<<20-1<<10))
}

// refusal returns a policy of the cluster that forbids new Secrets in one namespace, and its binding. Its message is different for each
// Secret.
func (f *flood) refusal(namespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	policy, binding := build.Policy(namespace, admissionv1.Create, corev1.SchemeGroupVersion.WithResource("secrets"), "false", "")
	policy.Spec.Validations[0].MessageExpression = "object.metadata.namespace + ' has no room for ' + object.metadata.name"
	return policy, binding
}

func prepareRefused(ctx context.Context, f *flood) error {
	if err := prepareChildren(ctx, f); err != nil {
		return err
	}
	// One policy and one binding are enough for all children: the binding selects them by their parent.
	policy, binding := f.refusal(f.root)
	binding.Spec.MatchResources.NamespaceSelector.MatchLabels = map[string]string{v1alpha1.LabelParent: f.root}
	if err := f.Admin().Create(ctx, policy); err != nil {
		return err
	}
	if err := f.Admin().Create(ctx, binding); err != nil {
		return err
	}
	return waitFor(ctx, "the policy to be in force", func(ctx context.Context) (bool, error) {
		return f.Admin().Create(ctx, build.Secret(f.child(0), "probe", "x"), client.DryRunAll) != nil, nil
	})
}

func endRefused(ctx context.Context, f *flood) error {
	policy, binding := f.refusal(f.root)
	if err := f.Admin().Delete(ctx, binding); err != nil {
		return err
	}
	return f.Admin().Delete(ctx, policy)
}

// plantTenant makes an LNamespace and waits for its root.
func (f *flood) plantTenant(ctx context.Context, tenant *v1alpha1.LNamespace) error {
	if err := f.Admin().Create(ctx, tenant); err != nil {
		return err
	}
	return waitFor(ctx, "the root of "+tenant.Name, func(ctx context.Context) (bool, error) {
		err := f.Admin().Get(ctx, client.ObjectKey{Name: tenant.Name}, &corev1.Namespace{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

func prepareFull(ctx context.Context, f *flood) error {
	return f.plantTenant(ctx, build.Tenant(f.root).Limits(1, -1).Object())
}

// beginWaiting asks for more SubNamespaces than there is room for. Admission refuses most. Those that arrive at the same moment as the
// last one that fits are stored, and wait.
func beginWaiting(ctx context.Context, f *flood) error {
	return inParallel(ctx, f.size(500), func(ctx context.Context, i int) error { return askForRoom(ctx, f, i) })
}

func askForRoom(ctx context.Context, f *flood, i int) error {
	err := f.Admin().Create(ctx, build.SubNamespace(f.root, f.child(i)))
	if apierrors.IsForbidden(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// putSubs makes the SubNamespaces with these numbers in the root of a flood.
func (f *flood) putSubs(ctx context.Context, from, to int) error {
	return inParallel(ctx, to-from, func(ctx context.Context, i int) error {
		return f.Admin().Create(ctx, build.SubNamespace(f.root, f.child(from+i)))
	})
}

func endWaiting(ctx context.Context, f *flood) error {
	return f.Admin().DeleteAllOf(ctx, &v1alpha1.SubNamespace{}, client.InNamespace(f.root))
}

func beginAsking(ctx context.Context, f *flood) error {
	return inParallel(ctx, f.size(100), func(ctx context.Context, i int) error {
		hc := build.Hierarchy(f.child(i))
		patch :=
			fmt.Sprintf(`{"apiVersion":%q,"kind":"HierarchyConfiguration","metadata":{"namespace":%q,"name":%q},"spec":{"parent":"nowhere-%d"}}`,
				v1alpha1.GroupVersion.String(), hc.Namespace, hc.Name, i)
		return f.Admin().Patch(ctx, hc, client.RawPatch(types.ApplyPatchType, []byte(patch)), client.FieldOwner("flood"), client.ForceOwnership)
	})
}

func endAsking(ctx context.Context, f *flood) error {
	return inParallel(ctx, f.size(100), func(ctx context.Context, i int) error {
		return f.Admin().DeleteAllOf(ctx, &v1alpha1.HierarchyConfiguration{}, client.InNamespace(f.child(i)))
	})
}

func prepareLabelled(ctx context.Context, f *flood) error {
	if err := f.plantTenant(ctx, build.Tenant(f.root).Object()); err != nil {
		return err
	}
	if err := f.putSubs(ctx, 0, f.size(200)); err != nil {
		return err
	}
	return f.putSources(ctx, 5, "x")
}

// relabel changes a label of one SubNamespace after the other.
func relabel(ctx context.Context, f *flood, n int) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"flood":"%d"}}}`, n))
	return f.Admin().Patch(ctx, build.SubNamespace(f.root, f.child(n%f.size(200))), patch)
}

func prepareSudoers(ctx context.Context, f *flood) error {
	return f.plantTenant(ctx, build.Tenant(f.root).Users("alice").Sudoers(sudoer).Object())
}

// toggle takes all sudoers off the list and puts one on again, by turns.
func toggle(ctx context.Context, f *flood, n int) error {
	if n%2 == 0 {
		return f.setList(ctx, f.root, "sudoers", []v1alpha1.Subject{})
	}
	return f.setList(ctx, f.root, "sudoers", build.Users(sudoer))
}
