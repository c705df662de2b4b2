package quota_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/quota"
	"github.com/warren-tenancy/warren/internal/budget"
)

func pods(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(amount)}
}

func tenant(hard, used, free string) *quota.Limit {
	return &quota.Limit{Kind: "LNamespace", Name: "payments", Reason: "Enforced",
		BudgetStatus: v1alpha1.BudgetStatus{Hard: pods(hard), Used: pods(used), Free: pods(free)}}
}

func hrq(hard, used, free string) *quota.Limit {
	l := tenant(hard, used, free)
	l.Kind, l.Namespace, l.Name = "HierarchicalResourceQuota", "pay-web", "team"
	return l
}

func share(limits ...*quota.Limit) *quota.Share {
	return &quota.Share{Namespace: "pay-web", Hard: pods("12"), Counted: pods("12"), Used: pods("12"), Limits: limits}
}

const hasOnlyPods = ": invalid resource: must be one that the share of pay-web has, which is pods=12: ask for these"

func TestSentences(t *testing.T) {
	const grows = ": the share grows when more is created; if that is refused: kubectl warren quota ask -n pay-web pods=1"
	uncounted := share(tenant("100", "97", "3"))
	uncounted.Counted = nil
	for name, c := range map[string]struct {
		share  *quota.Share
		needed string
		want   string
	}{
		"room elsewhere": {share(tenant("100", "97", "3")), "1", "pods: 12 used of a share of 12; tenant payments has 3 of 100 free" + grows},
		"full": {share(tenant("100", "100", "0")), "1",
			"pods: 12 used; tenant payments has used 100 of 100: delete something, or ask a cluster admin to raise spec.limits.hard"},
		"less is free than is needed": {share(tenant("100", "97", "3")), "5", "pods: 12 used of a share of 12; tenant payments has 3 of 100 " +
			"free, less than 5: delete something, or ask a cluster admin to raise spec.limits.hard"},
		"the smallest limit holds": {share(tenant("100", "97", "3"), hrq("12", "12", "0")), "1", "pods: 12 used; HierarchicalResourceQuota " +
			"pay-web/team has used 12 of 12: delete something, or ask a cluster admin or a sudoer to raise spec.hard"},
		"nothing is known of limits": {share(&quota.Limit{Name: "payments"}), "1", "pods: 12 used of a share of 12" + grows},
		"not counted":                {uncounted, "1", "pods: Kubernetes has not counted the share of 12 yet: try again in a few seconds"},
	} {
		t.Run("QUOTA-37 one sentence states what holds: "+name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.share.Describe(corev1.ResourcePods, resource.MustParse(c.needed))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAUserWhoMayReadNoLimit(t *testing.T) {
	full := share(&quota.Limit{Name: "payments"})
	full.Lacking = "pods: tenant payments had used 12 of 12 when 1 was needed: delete something, or ask a manager (User mia)"
	roomy := share()
	roomy.Used, roomy.Lacking = pods("11"), full.Lacking
	told := share()
	told.Told = budget.ReadTold(`{"at":"2026-11-30T10:52:31Z","used":{"pods":"37"},"hard":{"pods":"100"}}`)
	for name, c := range map[string]struct{ got, want string }{
		"QUOTA-75 a user who may read no limit sees what the share tells of the limit that is full, and who can help": {
			full.Describe(corev1.ResourcePods, resource.MustParse("1")), "pods: 12 used of a share of 12; tenant payments had used 12 of 12 when " +
				"1 was needed: delete something, or ask a manager (User mia)"},
		"QUOTA-75 a share that has room again doesn't tell of a limit that was full": {
			roomy.Describe(corev1.ResourcePods, resource.MustParse("1")),
			"pods: 11 used of a share of 12: the share grows when more is created; if that is refused: kubectl warren quota ask -n pay-web pods=1"},
		"QUOTA-102 a user who may read no limit sees what the share tells of use and limit of the tree, and of when that was": {
			told.Describe(corev1.ResourcePods, resource.MustParse("1")), "pods: 12 used of a share of 12; at 2026-11-30 10:52:31Z the tree had " +
				"used 37 of 100: the share grows when more is created; if that is refused: kubectl warren quota ask -n pay-web pods=1"},
		"QUOTA-75 a request that is not served is never answered with the advice to ask": {
			share().DescribeUnserved(corev1.ResourcePods, resource.MustParse("1")),
			"pods: 12 used of a share of 12: the operator made no room for 1 within 5s, because others wait for it too, or because it does not " +
				"run: try again in a minute, or ask a cluster admin to run kubectl warren doctor"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodsWithoutDefaults(t *testing.T) {
	limitRange := func(kind corev1.LimitType, requests, limits corev1.ResourceList) corev1.LimitRange {
		return corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: kind, DefaultRequest: requests, Default: limits}}}}
	}
	one := func(key corev1.ResourceName) corev1.ResourceList {
		return corev1.ResourceList{key: resource.MustParse("1")}
	}
	hard := corev1.ResourceList{"pods": resource.MustParse("9"), "requests.cpu": resource.MustParse("9"),
		"limits.memory": resource.MustParse("9"), "requests.ephemeral-storage": resource.MustParse("9")}
	for name, c := range map[string]struct {
		ranges []corev1.LimitRange
		want   []corev1.ResourceName
	}{
		"no LimitRange": {nil, []corev1.ResourceName{"limits.memory", "requests.cpu"}},
		"one has defaults for requests alone": {[]corev1.LimitRange{limitRange("Container", one("cpu"), nil)},
			[]corev1.ResourceName{"limits.memory"}},
		"two have all defaults": {[]corev1.LimitRange{limitRange("Container", one("cpu"), nil), limitRange("Container", nil, one("memory"))},
			nil},
		"one for pods has no defaults for containers": {[]corev1.LimitRange{limitRange("Pod", one("cpu"), one("memory"))},
			[]corev1.ResourceName{"limits.memory", "requests.cpu"}},
	} {
		t.Run("QUOTA-77 the resources that each container must set are those of the share without a default: "+name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, quota.ListUndefaulted(hard, c.ranges)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("QUOTA-77 one sentence names what a pod must set, and who can add a LimitRange", func(t *testing.T) {
		s := share()
		s.Undefaulted = []corev1.ResourceName{"requests.cpu"}
		const want = "requests.cpu: a pod that does not set this in each container is refused (must specify), because no LimitRange in " +
			"pay-web has defaults: set it, or ask a sudoer or a cluster admin for a LimitRange"
		if diff := cmp.Diff([]string{want}, s.Sentences()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLimits(t *testing.T) {
	uninstalled := &quota.Limit{Kind: "LNamespace", Name: "shop", Reason: "NotInstalled",
		BudgetStatus: v1alpha1.BudgetStatus{Hard: pods("5")}}
	var out bytes.Buffer
	err := quota.Limits{tenant("100", "37", "63"), uninstalled, {Name: "billing"}}.Write(&out)
	const want = `LIMIT             RESOURCE   HARD   USED        FREE        REASON
tenant payments   pods       100    37          63          Enforced
tenant shop       pods       5      <unknown>   <unknown>   NotInstalled
limit of billing: you may not read it
`
	if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestRequests(t *testing.T) {
	for words, want := range map[string]string{
		"":                              "name what one object needs: kubectl warren quota ask -n NAMESPACE RESOURCE=AMOUNT…",
		"pods":                          `invalid request "pods": must be RESOURCE=AMOUNT: write it such as pods=1`,
		"=1":                            `invalid request "=1": must be RESOURCE=AMOUNT: write it such as pods=1`,
		"pods=0":                        `pods: invalid amount "0": must be more than 0: name what one object needs`,
		"pods=-1":                       `pods: invalid amount "-1": must be more than 0: name what one object needs`,
		"pods=many":                     `pods: invalid amount "many": must be a quantity: write it such as 1, 500m or 500Gi`,
		"pods=1 pods=2":                 `pods: invalid amount "2": must be given once: add the amounts up`,
		"requests.cpu=1":                "requests.cpu" + hasOnlyPods,
		"pods=1 requests.storage=500Gi": "requests.storage" + hasOnlyPods,
		"pods=1":                        "",
	} {
		t.Run("a request that names no amounts of limited resources is refused: "+words, func(t *testing.T) {
			asked, err := quota.ParseRequest(strings.Fields(words))
			if err == nil {
				err = share().CheckLimited(asked)
			}
			if got := errorText(err); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLimitsThatNobodyReads(t *testing.T) {
	t.Run("QUOTA-98 in place of an empty table, quota names the trees whose limits the user may not read, and "+
		"the next command", func(t *testing.T) {
		var out bytes.Buffer
		if err := (quota.Limits{{Name: "payments"}}).Write(&out); err != nil {
			t.Fatal(err)
		}
		want := "You may read no limit of these trees:\nlimit of payments: you may not read it\n" +
			"What one namespace may use now: kubectl warren quota -n payments. A manager may read the limits of the tenant.\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
