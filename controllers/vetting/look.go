package vetting

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/rolevetting"
	"github.com/warren-tenancy/warren/internal/userrole"
)

// checkRole compares the present role with the vetted list. If the findings differ from those of the last look, it
// reports all of them. If the dangerous ones differ, it also requeues every tenant. again is the time until the next
// look.
func (v *Vetter) checkRole(ctx context.Context) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.Timing.Timeout)
	defer cancel()
	now, err := v.compareRole(ctx, v.Role)
	if err != nil {
		return 0, err
	}
	before := cmp.Or(v.lastVerdict(), &verdict{})
	var concerned []reconcile.Request
	if !slices.Equal(rolevetting.Messages(before.findings, rolevetting.Danger), rolevetting.Messages(now.findings, rolevetting.Danger)) {
		// Before the verdict is stored: if the list fails, the next look finds the same difference.
		if concerned, err = v.listTenants(ctx); err != nil {
			return 0, err
		}
	}
	v.mu.Lock()
	v.last = now
	v.mu.Unlock()
	for _, severity := range []rolevetting.Severity{rolevetting.New, rolevetting.Danger} {
		findings.WithLabelValues(string(severity)).Set(float64(rolevetting.Count(now.findings, severity)))
	}
	if !rolevetting.Same(before.findings, now.findings) {
		v.announceDifferences(v.Role, now)
	}
	v.tenants.Add(concerned...)
	return v.Timing.Interval, nil
}

// compareRole reads the role and compares it with the list. A missing role grants nothing, so it has no findings.
func (v *Vetter) compareRole(ctx context.Context, name string) (*verdict, error) {
	role, err := userrole.Read(ctx, v.Live, name)
	if apierrors.IsNotFound(err) {
		return &verdict{}, nil
	}
	if err != nil {
		return nil, err
	}
	server, err := v.version(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the API server's version: %w", err)
	}
	minor, err := rolevetting.Minor(server)
	if err != nil {
		return nil, err
	}
	found, _, err := rolevetting.Shipped.Judge(role, minor)
	return &verdict{role: role, findings: found}, err
}

func (v *Vetter) listTenants(ctx context.Context) ([]reconcile.Request, error) {
	list := &v1alpha1.LNamespaceList{}
	if err := v.Tenants.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LNamespaces: %w", err)
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests, nil
}

// announceDifferences logs the findings, and sends an Event on the role.
func (v *Vetter) announceDifferences(name string, now *verdict) {
	dangers, news := rolevetting.Messages(now.findings, rolevetting.Danger), rolevetting.Messages(now.findings, rolevetting.New)
	ctrl.Log.WithName("vetting").Info("the rights of users have changed", "clusterRole", name, "danger", dangers, "new", news)
	if now.role == nil {
		return // there is no object for an Event
	}
	kind := corev1.EventTypeNormal
	if len(dangers) > 0 {
		kind = corev1.EventTypeWarning
	}
	on := &corev1.ObjectReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: name, UID: now.role.UID}
	v.Events.Event(on, kind, string(v1alpha1.ReasonUserRoleChanged), shortSentence(dangers, news))
}

// shortSentence joins the findings to a message that has at most 1024 bytes, as other messages of Events have.
func shortSentence(dangers, news []string) string {
	var held []string
	if len(dangers) > 0 {
		held = append(held, "dangerous rights: "+rolevetting.Join(dangers, 550))
	}
	if len(news) > 0 {
		held = append(held, "rights that were not vetted: "+rolevetting.Join(news, 350))
	}
	if len(held) == 0 {
		return "all rights that this ClusterRole gives users of tenants are vetted"
	}
	return "users of every tenant hold " + strings.Join(held, "; and ")
}
