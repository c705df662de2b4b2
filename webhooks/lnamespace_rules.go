package webhooks

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/grants"
)

var spec = field.NewPath("spec")

// tenantRules hold what the configuration says about LNamespaces.
type tenantRules struct {
	*config.OperatorConfiguration
	operatorNamespace string
}

// checkTenantForm refuses two mistakes that the API server's own message would explain badly. For a name with a
// character such as _, that message may state that dots are allowed. For an item of a list that is plain text, such as
// bob, it complains only about the type. raw is an LNamespace as it was written, before its schema is judged.
func checkTenantForm(raw []byte) field.ErrorList {
	var problems field.ErrorList
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	_ = json.Unmarshal(raw, &object) // a field of another type stays empty, and is left to the schema
	if name := object.Metadata.Name; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), name,
			"an LNamespace name is a DNS label of at most 63 characters: use lowercase letters, digits and -, with a letter or digit at both ends"))
	}
	for _, list := range []grants.List{grants.ListUsers, grants.ListManagers, grants.ListSudoers} {
		people, _ := object.Spec[string(list)].([]any)
		for i, person := range people {
			if name, bare := person.(string); bare {
				problems = append(problems, field.Invalid(spec.Child(string(list)).Index(i), name,
					"name its kind too, as in {kind: User, name: "+name+"}"))
			}
		}
	}
	return problems
}

// checkNewTenant checks a new LNamespace.
func checkNewTenant(s *forest.Snapshot, lns *v1alpha1.LNamespace, rules tenantRules, g *visibility) findings {
	var f findings
	name := field.NewPath("metadata", "name")
	n := s.Namespace(lns.Name)
	if rules.Reserved(lns.Name, rules.operatorNamespace) {
		f.addProblems(field.Forbidden(name, lns.Name+" is a reserved name: choose another"))
	} else if n != nil {
		tenant := forest.TenantOf(lns)
		why := forest.NotAdoptable(s, n, tenant)
		if why != "" && !g.maySeeNamespace(lns.Name) {
			why = forest.NotMarked(tenant) // this text says nothing about what the namespace is
		}
		if why != "" {
			f.addProblems(field.Forbidden(name, why))
		}
	}
	f.addProblems(checkNewSubjects(s, &v1alpha1.LNamespace{}, lns, rules.operatorNamespace)...)
	f.addWarnings(warnOfLookAlikes(&v1alpha1.LNamespace{}, lns)...)
	f.tenantTemplate(s, "", lns.Spec.Template)
	f.addProblems(billingComplete(lns.Spec.Billing, rules.Billing)...)
	f.addWarnings(undefaulted(nil, lns.Spec.Limits)...)
	return f
}

// checkChangedTenant checks what an update changes in an LNamespace.
func checkChangedTenant(s *forest.Snapshot, old, now *v1alpha1.LNamespace, rules tenantRules) findings {
	var f findings
	f.addProblems(checkNewSubjects(s, old, now, rules.operatorNamespace)...)
	f.addWarnings(warnOfLookAlikes(old, now)...)
	f.tenantTemplate(s, old.Spec.Template, now.Spec.Template)
	f.addWarnings(undefaulted(old.Spec.Limits, now.Spec.Limits)...)
	editors := func(lns *v1alpha1.LNamespace) int { return len(lns.Spec.Managers) + len(lns.Spec.Sudoers) }
	if editors(old) > 0 && editors(now) == 0 {
		f.addWarnings("no manager and no sudoer is left: only cluster admins can now edit LNamespace " + now.Name)
	}
	if leaving := forest.AbandonedBy(s.WithTenant(forest.TenantOf(now)), now.Name); len(leaving) > 0 {
		f.addWarnings("these namespaces will leave the tree of tenant " + now.Name + ", because its lists no longer name any subject that " +
			"administered them: " + forest.Few(leaving))
	}
	return f
}

func (f *findings) tenantTemplate(s *forest.Snapshot, old, now string) {
	if now == "" || now == old {
		return
	}
	problems, warnings := templateTarget(s, spec.Child("template"), now)
	f.addProblems(problems...)
	f.addWarnings(warnings...)
}

// checkNewSubjects refuses newly listed subjects that would get nothing. A subject that was listed before is left
// alone, even if it gets nothing any more: only the condition of the LNamespace reports that. The snapshot must hold
// the namespaces of the service accounts.
func checkNewSubjects(s *forest.Snapshot, old, now *v1alpha1.LNamespace, operatorNamespace string) field.ErrorList {
	around := grants.Surroundings{
		OperatorNamespace: operatorNamespace,
		InTree:            func(namespace string) bool { return s.BelongsTo(namespace, now.Name) },
		Doubt: func(account v1alpha1.Subject) string {
			if s.Namespace(account.Namespace) != nil {
				return ""
			}
			return fmt.Sprintf("%s can't be listed, because namespace %s does not exist, and a user who creates it would get the rights of the "+
				"account: create the namespace first", account, account.Namespace)
		},
	}
	var problems field.ErrorList
	for _, r := range grants.Refusals(now, around) {
		if is := r.List.Of(now); !slices.Contains(r.List.Of(old), r.Subject) {
			problems = append(problems, field.Forbidden(spec.Child(string(r.List)).Index(slices.Index(is, r.Subject)), r.Why))
		}
	}
	return problems
}

// newAccountNamespaces returns the namespaces of the service accounts that a list of now has, and the same list of old
// has not: checkNewSubjects judges no others.
func newAccountNamespaces(old, now *v1alpha1.LNamespace) []string {
	var namespaces []string
	for _, list := range grants.Lists() {
		before := list.Of(old)
		for _, s := range list.Of(now) {
			if s.Kind == v1alpha1.SubjectServiceAccount && !slices.Contains(before, s) {
				namespaces = append(namespaces, s.Namespace)
			}
		}
	}
	return namespaces
}

// undefaulted warns of new keys of a budget for which Kubernetes refuses pods that don't state a resource.
func undefaulted(old, now *v1alpha1.Limits) []string {
	if now == nil {
		return nil
	}
	var keys []string
	for key := range now.Hard {
		if needed, _ := budget.StatedBy(key); needed != "" && (old == nil || !has(old.Hard, key)) {
			keys = append(keys, string(key))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	return []string{"spec.limits.hard: with " + strings.Join(keys, ", ") + ", Kubernetes refuses pods that don't set this in each container " +
		"(must specify): add a LimitRange with defaults to each namespace, for example by a template"}
}

func has(hard v1alpha1.Budget, key corev1.ResourceName) bool {
	_, ok := hard[key]
	return ok
}

// billingComplete checks the billing of a new LNamespace, after defaulting: required fields and the pattern of cost
// centers.
func billingComplete(stated *v1alpha1.Billing, rules config.Billing) field.ErrorList {
	if stated == nil {
		stated = &v1alpha1.Billing{}
	}
	at := spec.Child("billing")
	var problems field.ErrorList
	for _, required := range rules.Required {
		value := stated.CostCenter
		if required == config.RequireOwner {
			value = stated.Owner
		}
		if value == "" {
			problems = append(problems, field.Required(at.Child(string(required)), "the configuration requires it of every new LNamespace; "+
				"if you may not set it, ask a cluster admin"))
		}
	}
	pattern, err := regexp.Compile(rules.CostCenterPattern)
	if rules.CostCenterPattern != "" && stated.CostCenter != "" && (err != nil || !pattern.MatchString(stated.CostCenter)) {
		problems = append(problems, field.Invalid(at.Child("costCenter"), stated.CostCenter, "must match "+rules.CostCenterPattern))
	}
	return problems
}

// checkTenantDeletion checks the deletion of an LNamespace by a person. An LNamespace that doesn't own its root may
// always be deleted, because that leaves the namespace alone.
func checkTenantDeletion(s *forest.Snapshot, lns *v1alpha1.LNamespace, g *visibility) findings {
	if !lns.DeletionTimestamp.IsZero() || !s.Owns(lns.Name, string(lns.UID)) {
		return findings{}
	}
	return checkDeletion(s, lns.Name, g)
}

// checkTenantCount refuses another LNamespace to a user who has at least as many as the configuration allows.
func checkTenantCount(user string, has, most int) field.ErrorList {
	if has < most {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"),
		fmt.Sprintf("%s has %d of %d LNamespaces: ask a cluster admin to delete %s, or to raise tenants.maxPerCreator", user, has, most,
			forest.OneOr(has-most+1)))}
}

// creatorAsSubject returns the subject that a new LNamespace lists as its first manager and sudoer; false if the user
// can't be listed. It refuses everything that the schema of a Subject refuses.
func creatorAsSubject(username string) (v1alpha1.Subject, bool) {
	if account, ok := strings.CutPrefix(username, "system:serviceaccount:"); ok {
		namespace, name, found := strings.Cut(account, ":")
		listable := found && namespace != "" && name != "" && !strings.HasPrefix(namespace, "kube-")
		return v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: namespace, Name: name}, listable
	}
	reserved := strings.HasPrefix(username, "system:") || strings.HasPrefix(username, "warren:")
	odd := username == "" || username == "*" || len(username) > 256 || strings.TrimSpace(username) != username ||
		strings.ContainsFunc(username, func(r rune) bool { return r < ' ' || r == 0x7f })
	return v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: username}, !reserved && !odd
}
