package sudo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func TestArguments(t *testing.T) {
	cases := map[string]struct {
		words, leading []string
		reason         string
		want           []string
	}{
		"one word": {strings.Fields("version"), nil, "", strings.Fields("version --as=bob --as-group=payments-sudoers")},
		"right behind the first word": {strings.Fields("warren access payments"), nil, "",
			strings.Fields("warren --as=bob --as-group=payments-sudoers access payments")},
		"before --": {strings.Fields("exec web-0 -- ls -n shop"), nil, "",
			strings.Fields("exec --as=bob --as-group=payments-sudoers web-0 -- ls -n shop")},
		"with a reason": {strings.Fields("get pods"), nil, "INC 42: räumen",
			[]string{"get", "--as=bob", "--as-group=payments-sudoers", "--as-user-extra=tenancy.warren.dev/reason=INC 42: räumen", "pods"}},
		"what stood before the command": {strings.Fields("get pods"), []string{"--namespace=pay-web"}, "",
			strings.Fields("get --namespace=pay-web --as=bob --as-group=payments-sudoers pods")},
	}
	as := rest.ImpersonationConfig{UserName: "bob", Groups: []string{"payments-sudoers"}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, kubectlArguments(c.words, c.leading, as, c.reason)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
