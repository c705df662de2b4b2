package lnamespace

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// shelf is a cluster that has guardrails in template rails, and counts lists.
type shelf struct {
	client.WithWatch
	lists int
	fails error
}

func newShelf(objects ...client.Object) *shelf {
	s := &shelf{}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			s.lists++
			if s.fails != nil {
				return s.fails
			}
			return c.List(ctx, list, options...)
		}}).Build()
	return s
}

func labelled(namespace, name string, labels ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}
	for pair := range slices.Chunk(labels, 2) {
		meta.Labels[pair[0]] = pair[1]
	}
	return meta
}

func TestGuardrailsThatAreNotCopied(t *testing.T) {
	s := newShelf(
		&corev1.ResourceQuota{ObjectMeta: labelled("rails", "quota", v1alpha1.LabelPropagate, "update")},
		&networkingv1.NetworkPolicy{ObjectMeta: labelled("rails", "deny", v1alpha1.LabelPropagate, "create")},
		&networkingv1.NetworkPolicy{ObjectMeta: labelled("rails", "excluded", v1alpha1.LabelPropagate, "none")},
		&networkingv1.NetworkPolicy{ObjectMeta: labelled("rails", "copy", v1alpha1.LabelPropagate, "update", v1alpha1.LabelInheritedFrom, "x")},
		&corev1.LimitRange{ObjectMeta: labelled("rails", "unlabelled")},
		&corev1.LimitRange{ObjectMeta: labelled("elsewhere", "limits", v1alpha1.LabelPropagate, "update")})
	r := &Reconciler{Uncopied: &UncopiedGuardrails{Live: s, Kinds: Guardrails}}
	tenants := forest.New(forest.Rules{}).WithNamespace(&forest.Namespace{Name: "rails",
		Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeTemplate}})
	for name, template := range map[string]string{"shop": "rails", "plain": ""} {
		tenants = tenants.WithNamespace(&forest.Namespace{Name: name, Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot,
			v1alpha1.LabelTemplate: template}})
	}
	t.Run("ACC-N20 a template's ResourceQuota or NetworkPolicy that asks for copies, and whose kind is not copied, gives TemplateReady False "+
		"KindNotPropagated, with its name", func(t *testing.T) {
		got, _ := r.findUncopied(t.Context(), tenants, "shop", nil)
		want := templateTrouble{"KindNotPropagated", `these objects have the label propagate, but the operator copies no objects of their ` +
			`kinds, so they limit nothing here: ResourceQuota "quota" of template rails, NetworkPolicy "deny" of template rails; a cluster ` +
			`admin adds the kinds to propagation.kinds, or takes the label off`}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(templateTrouble{})); diff != "" {
			t.Error(diff)
		}
	})
	if got, again := r.findUncopied(t.Context(), tenants, "plain", nil); got.message != "" || again != 0 {
		t.Errorf("without a template: %+v, again in %s", got, again)
	}
}

func TestLooksAtTemplates(t *testing.T) {
	t.Run("ACC-N21 a template is read once for all tenants, after 1 min, 2 min, up to an hour; each minute while a guardrail is not "+
		"copied", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf()
			u := &UncopiedGuardrails{Live: s, Kinds: Guardrails[:1]}
			ask := func(wantLists int, wantObjects int, wantAgain time.Duration) {
				t.Helper()
				for range 3 {
					objects, again, ok := u.find(t.Context(), []string{"rails"})
					if s.lists != wantLists || len(objects) != wantObjects || again != wantAgain || !ok {
						t.Errorf("%d lists, objects %q, again in %s, ok %v", s.lists, objects, again, ok)
					}
				}
			}
			ask(1, 0, time.Minute)
			time.Sleep(30 * time.Second)
			ask(1, 0, 30*time.Second)
			time.Sleep(30 * time.Second)
			ask(2, 0, 2*time.Minute)
			for range 8 {
				time.Sleep(time.Hour)
				_, _, _ = u.find(t.Context(), []string{"rails"})
			}
			ask(10, 0, time.Hour)
			quota := &corev1.ResourceQuota{ObjectMeta: labelled("rails", "quota", v1alpha1.LabelPropagate, "update")}
			if err := s.Create(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			ask(11, 1, time.Minute)
			time.Sleep(time.Minute)
			ask(12, 1, time.Minute)
			if err := s.Delete(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			ask(13, 0, 2*time.Minute)
		})
	})
}

func TestTemplatesThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		fails error
		was   *metav1.Condition
		want  string
	}{
		"no right": {apierrors.NewForbidden(corev1.Resource("resourcequotas"), "", nil), nil, ""},
		"failed read": {errors.New("timeout"), &metav1.Condition{Reason: "KindNotPropagated", Message: "old"},
			"old"},
		"failed read after another reason": {errors.New("timeout"), &metav1.Condition{Reason: "Conflict", Message: "old"}, ""},
	} {
		t.Run("ACC-N22 without the right to list guardrails nothing is reported; after a read that failed, what was reported stays: "+
			name, func(t *testing.T) {
			s := newShelf()
			s.fails = c.fails
			r := &Reconciler{Uncopied: &UncopiedGuardrails{Live: s, Kinds: Guardrails}}
			tenants := forest.New(forest.Rules{}).
				WithNamespace(&forest.Namespace{Name: "rails", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeTemplate}}).
				WithNamespace(&forest.Namespace{Name: "shop", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot,
					v1alpha1.LabelTemplate: "rails"}})
			got, again := r.findUncopied(t.Context(), tenants, "shop", c.was)
			if got.message != c.want || again.Round(time.Second) != time.Minute {
				t.Errorf("%+v, again in %s", got, again)
			}
		})
	}
}
