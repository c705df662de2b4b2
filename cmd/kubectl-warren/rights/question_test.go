package rights

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func rule(groups, resources, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs, ResourceNames: names}
}

func TestMatches(t *testing.T) {
	type list = []string
	secrets := Question{Verb: "delete", Resource: "secrets", Namespace: "pay-web"}
	db := Question{Verb: "delete", Resource: "secrets", Name: "db", Namespace: "pay-web"}
	logs := Question{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "pay-web"}
	scale := Question{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"}
	everything := Question{Verb: "*", Group: "*", Resource: "*"}
	for name, c := range map[string]struct {
		question Question
		rule     rbacv1.PolicyRule
		want     bool
	}{
		"the same":                            {secrets, rule(list{""}, list{"pods", "secrets"}, list{"get", "delete"}), true},
		"another verb":                        {secrets, rule(list{""}, list{"secrets"}, list{"get"}), false},
		"another group":                       {secrets, rule(list{"apps"}, list{"secrets"}, list{"delete"}), false},
		"another resource":                    {secrets, rule(list{""}, list{"pods"}, list{"delete"}), false},
		"wildcards":                           {secrets, rule(list{"*"}, list{"*"}, list{"*"}), true},
		"no wildcard within a word":           {secrets, rule(list{""}, list{"sec*"}, list{"del*"}), false},
		"a name, for all of them":             {secrets, rule(list{""}, list{"secrets"}, list{"delete"}, "db"), false},
		"a name":                              {db, rule(list{""}, list{"secrets"}, list{"delete"}, "web", "db"), true},
		"another name":                        {db, rule(list{""}, list{"secrets"}, list{"delete"}, "web"), false},
		"all names":                           {db, rule(list{""}, list{"secrets"}, list{"delete"}), true},
		"no wildcard in names":                {db, rule(list{""}, list{"secrets"}, list{"delete"}, "*"), false},
		"a subresource":                       {logs, rule(list{""}, list{"pods/log"}, list{"get"}), true},
		"a subresource isn't in its resource": {logs, rule(list{""}, list{"pods"}, list{"get"}), false},
		"a resource isn't in its subresource": {Question{Verb: "get", Resource: "pods"}, rule(list{""}, list{"pods/log"}, list{"get"}),
			false},
		"a subresource of all":                    {scale, rule(list{"apps"}, list{"*/scale"}, list{"update"}), true},
		"another subresource of all":              {scale, rule(list{"apps"}, list{"*/status"}, list{"update"}), false},
		"all subresources of one is no wildcard":  {scale, rule(list{"apps"}, list{"deployments/*"}, list{"update"}), false},
		"all resources with their subresources":   {scale, rule(list{"apps"}, list{"*"}, list{"update"}), true},
		"URLs":                                    {secrets, rbacv1.PolicyRule{NonResourceURLs: list{"*"}, Verbs: list{"*"}}, false},
		"everything needs everything":             {everything, rule(list{"*"}, list{"*"}, list{"*"}), true},
		"everything is more than all of one kind": {everything, rule(list{""}, list{"secrets"}, list{"*"}), false},
	} {
		if got := c.question.matchesRule(c.rule); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestQuestionInWords(t *testing.T) {
	for want, q := range map[string]Question{
		"delete secrets/db in pay-web": {Verb: "delete", Resource: "secrets", Name: "db", Namespace: "pay-web"},
		"update lnamespaces.tenancy.warren.dev/payments": {Verb: "update", Group: "tenancy.warren.dev", Resource: "lnamespaces",
			Name: "payments"},
		"get pods (subresource log) in pay-web": {Verb: "get", Resource: "pods", Subresource: "log", Namespace: "pay-web"},
	} {
		if got := q.String(); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestIdentity(t *testing.T) {
	user := rbacv1.Subject{Kind: rbacv1.UserKind, Name: "otto"}
	group := rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "pay-oncall"}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ci", Name: "deployer"}
	all := rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:ci"}
	deployer := Person("system:serviceaccount:ci:deployer")
	for name, c := range map[string]struct {
		id   Identity
		of   rbacv1.Subject
		want bool
	}{
		"a user":                               {Person("otto"), user, true},
		"another user":                         {Person("bob"), user, false},
		"a member":                             {Person("otto", "pay-oncall"), group, true},
		"no member":                            {Person("otto", "pay-devs"), group, false},
		"a user of a group's name":             {Person("pay-oncall"), group, false},
		"every user":                           {Person("otto"), rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"}, true},
		"a service account":                    {deployer, account, true},
		"one of another namespace":             {Person("system:serviceaccount:other:deployer"), account, false},
		"all of a namespace":                   {deployer, all, true},
		"all of another":                       {Person("system:serviceaccount:other:deployer"), all, false},
		"the group alone":                      {identityOfSubject(group), group, true},
		"a service account alone has its rest": {identityOfSubject(account), all, true},
	} {
		if got := c.id.matchesSubject(c.of); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if got := Person("bob", "payments-sudoers", "ops").Unraised(); !got.equalsIdentity(Person("bob", "ops")) {
		t.Errorf("%+v", got)
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct{ a, b, or, and Answer }{
		{Yes, No, Yes, No}, {Yes, Unknown, Yes, Unknown}, {No, Unknown, Unknown, No},
		{Yes, Yes, Yes, Yes}, {No, No, No, No}, {Unknown, Unknown, Unknown, Unknown},
	} {
		if c.a.combineByOr(c.b) != c.or || c.b.combineByOr(c.a) != c.or {
			t.Errorf("%s or %s: %s", c.a, c.b, c.a.combineByOr(c.b))
		}
		if c.a.combineByAnd(c.b) != c.and || c.b.combineByAnd(c.a) != c.and {
			t.Errorf("%s and %s: %s", c.a, c.b, c.a.combineByAnd(c.b))
		}
	}
}
