package model_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// population is what lists and questions are drawn from: few people for many tenants, so that tenants share people.
type population struct {
	tenants  []string
	trees    map[string][]string // the namespaces of each tenant, its root first
	subjects []v1alpha1.Subject
	users    []string // those among the subjects, and some whom nobody lists
	groups   []string
	outside  []string // namespaces that are no tenant's
}

// populated is a population with that many tenants. Each has a root, a sub-namespace and one below that; every second has one more.
func populated(tenants int) population {
	p := population{
		trees: map[string][]string{},
		// Some names exist in two kinds, and some look like something else.
		users:   []string{"g01", "t00-sudoers", "U00", "Zoë Müller", "https://acc/1#2%3", "a/b", "a~1b"},
		groups:  []string{"u01"},
		outside: []string{"default", "kube-system", "warren-system", "ci"},
	}
	for n := range tenants {
		name := fmt.Sprintf("t%02d", n)
		tree := []string{name, name + "-a", name + "-b"}
		if n%2 == 0 {
			tree = append(tree, name+"-c")
		}
		p.tenants, p.trees[name] = append(p.tenants, name), tree
	}
	for n := range 20 {
		p.users = append(p.users, fmt.Sprintf("u%02d", n))
	}
	for n := range 8 {
		p.groups = append(p.groups, fmt.Sprintf("g%02d", n))
	}
	p.subjects = build.Users(p.users...)
	for _, group := range p.groups {
		p.subjects = append(p.subjects, build.Group(group))
	}
	// Service accounts of one name in several namespaces, some of them in the tree of a tenant.
	for _, namespace := range []string{"ci", "default", "t00", "t01-a", "t02-b"} {
		p.subjects = append(p.subjects, build.ServiceAccount(namespace, "deployer"))
	}
	p.subjects = append(p.subjects, build.ServiceAccount("ci", "default"))
	p.users = append(p.users, "stranger", "nobody")
	p.groups = append(p.groups, "strangers")
	return p
}

// parentOf is the parent of the i-th namespace of a tree.
func parentOf(tree []string, i int) string {
	if i == 2 {
		return tree[1]
	}
	return tree[0]
}

// tenantOf names the tenant of every namespace of a tree.
func (p population) tenantOf() map[string]string {
	of := map[string]string{}
	for name, tree := range p.trees {
		for _, namespace := range tree {
			of[namespace] = name
		}
	}
	return of
}

// add draws a subject and adds it to a list of an LNamespace, unless it is there already. A service account of the tenant's own tree is
// refused on each list.
func (p population) add(r *rand.Rand, lns *v1alpha1.LNamespace, list *[]v1alpha1.Subject) {
	s := pick(r, p.subjects)
	if refused := slices.Contains(p.trees[lns.Name], s.Namespace); !refused && !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// redraw replaces a list by a random one.
func (p population) redraw(r *rand.Rand, lns *v1alpha1.LNamespace, list *[]v1alpha1.Subject) {
	*list = []v1alpha1.Subject{}
	for range r.IntN(7) {
		p.add(r, lns, list)
	}
}

// listsOf are the three lists of an LNamespace.
func listsOf(lns *v1alpha1.LNamespace) []*[]v1alpha1.Subject {
	return []*[]v1alpha1.Subject{&lns.Spec.Users, &lns.Spec.Managers, &lns.Spec.Sudoers}
}

// edit changes one of the lists: mostly it adds or removes one subject, sometimes it changes all of it.
func (p population) edit(r *rand.Rand, lns *v1alpha1.LNamespace) {
	list := pick(r, listsOf(lns))
	switch n := r.IntN(20); {
	case n == 0:
		*list = []v1alpha1.Subject{}
	case n < 3:
		p.redraw(r, lns, list)
	case n < 11 && len(*list) > 0:
		i := r.IntN(len(*list))
		*list = slices.Delete(*list, i, i+1)
	default:
		p.add(r, lns, list)
	}
}

// anyone draws a person with some groups, or a service account.
func (p population) anyone(r *rand.Rand) who {
	if r.IntN(10) == 0 {
		return p.somebody(r, pick(r, p.subjects))
	}
	return who{pick(r, p.users), p.someGroups(r)}
}

// somebody draws a person to whom that entry of a list applies.
func (p population) somebody(r *rand.Rand, s v1alpha1.Subject) who {
	switch s.Kind {
	case v1alpha1.SubjectUser:
		return who{s.Name, p.someGroups(r)}
	case v1alpha1.SubjectGroup:
		return who{pick(r, p.users), append(p.someGroups(r), s.Name)}
	}
	return who{serviceAccountName(s.Namespace, s.Name), []string{"system:serviceaccounts", "system:serviceaccounts:" + s.Namespace}}
}

func (p population) someGroups(r *rand.Rand) []string {
	var groups []string
	for range r.IntN(3) {
		groups = append(groups, pick(r, p.groups))
	}
	return groups
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
