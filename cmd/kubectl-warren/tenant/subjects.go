package tenant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// subjects has the values of the three flags for one list of an LNamespace: --user, --user-group and
// --user-serviceaccount for users.
type subjects struct {
	users, groups   []string
	serviceAccounts serviceAccounts
}

// addFlags gives cmd the flags of a list. A flag is repeated and not split at commas, because names of users may have
// commas.
func (s *subjects) addFlags(cmd *cobra.Command, list, who string) {
	cmd.Flags().StringArrayVar(&s.users, list, nil, "User "+who+"; can be repeated")
	cmd.Flags().StringArrayVar(&s.groups, list+"-group", nil, "Group "+who+"; can be repeated")
	cmd.Flags().Var(&s.serviceAccounts, list+"-serviceaccount", "ServiceAccount "+who+"; can be repeated")
}

// joinSubjects are the subjects: users, then groups, then service accounts, each in the order of the command line.
func (s *subjects) joinSubjects() []v1alpha1.Subject {
	var all []v1alpha1.Subject
	for _, name := range s.users {
		all = append(all, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name})
	}
	for _, name := range s.groups {
		all = append(all, v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: name})
	}
	return slices.Concat(all, s.serviceAccounts)
}

// serviceAccounts is the value of a flag that takes NAMESPACE:NAME or NAMESPACE/NAME and can be repeated.
type serviceAccounts []v1alpha1.Subject

var _ pflag.Value = &serviceAccounts{}

func (a *serviceAccounts) Type() string { return "NAMESPACE:NAME" }

func (a *serviceAccounts) String() string {
	var names []string
	for _, subject := range *a {
		names = append(names, subject.Namespace+":"+subject.Name)
	}
	return strings.Join(names, " ")
}

func (a *serviceAccounts) Set(value string) error {
	i := strings.IndexAny(value, ":/")
	if i <= 0 || i == len(value)-1 || strings.ContainsAny(value[i+1:], ":/") {
		return fmt.Errorf("must be NAMESPACE:NAME or NAMESPACE/NAME")
	}
	*a = append(*a, v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: value[:i], Name: value[i+1:]})
	return nil
}
