package attack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// row has the requests of some actors, and their results: a case, or a part of one, of docs/behaviour. The rows that rows returns can run
// at once: none depends on what another changes. The other rows run one after the other.
type row struct {
	name  string
	tries []try
	// then checks the result of the tries. It may be nil.
	then func(context.Context, *fixture)
}

// try is one actor's requests that all end in the same way.
type try struct {
	by       actor
	requests []request
	// refuser is a part of the message that shows what refused the request. It is empty if the requests are allowed.
	refuser string
	// says is a further part of the message.
	says string
	code int
}

// The values of refuser.
const (
	policy      = "ValidatingAdmissionPolicy 'warren-"
	rbac        = " cannot "
	podSecurity = "violates PodSecurity"
)

// refused expects 403 from one of Warren's policies.
func refused(by actor, says string, requests ...request) try {
	return try{by, requests, policy, spelled(says), http.StatusForbidden}
}

// invalid expects 422 from one of Warren's policies.
func invalid(by actor, says string, requests ...request) try {
	return try{by, requests, policy, spelled(says), http.StatusUnprocessableEntity}
}

// denied expects 403 from RBAC.
func denied(by actor, requests ...request) try {
	return try{by, requests, rbac, "", http.StatusForbidden}
}

// allowed expects success.
func allowed(by actor, requests ...request) try { return try{by: by, requests: requests} }

// holds makes all tries of a row, then checks it.
func (f *fixture) holds(ctx context.Context, r row) {
	GinkgoHelper()
	for _, t := range r.tries {
		f.attempt(ctx, t)
	}
	if r.then != nil {
		r.then(ctx, f)
	}
}

// attempt sends the requests one after the other. It expects that a refused request changes nothing.
func (f *fixture) attempt(ctx context.Context, t try) {
	GinkgoHelper()
	c := f.caller(t.by)
	for _, request := range t.requests {
		story := fmt.Sprintf("%s: %s", t.by, request.what)
		if t.refuser == "" {
			Expect(request.send(ctx, c)).To(Succeed(), story)
			continue
		}
		before := f.look(ctx, request.target)
		err := request.send(ctx, c)
		Expect(err).To(HaveOccurred(), story)
		Expect(codeOf(err)).To(Equal(t.code), "%s: %v", story, err)
		Expect(err.Error()).To(And(ContainSubstring(t.refuser), ContainSubstring(t.says)), story)
		Expect(cmp.Diff(before, f.look(ctx, request.target))).To(BeEmpty(), "%s was refused and yet has changed something", story)
	}
}

// rehearse expects that the API server would accept every request that our policies must refuse.
func (f *fixture) rehearse(ctx context.Context, r row) {
	GinkgoHelper()
	for _, t := range r.tries {
		if t.refuser != policy {
			continue
		}
		c := f.caller(t.by).rehearsing()
		for _, request := range t.requests {
			Eventually(ctx, func(ctx context.Context) error { return request.send(ctx, c) }).
				Should(Succeed(), "%s, %s: %s", r.name, t.by, request.what)
		}
	}
}

func (c caller) rehearsing() caller {
	run := c.Kubectl
	c.Client = client.NewDryRunClient(c.Client)
	c.Kubectl = func(ctx context.Context, stdin string, args ...string) error {
		return run(ctx, stdin, append(args, "--dry-run=server")...)
	}
	return c
}

// look returns the target as it is stored, or nil if it doesn't exist. For a target that ends in *, it returns the names of all that
// match.
func (f *fixture) look(ctx context.Context, target string) any {
	GinkgoHelper()
	u := object(target, "")
	if u.GetName() == "" {
		all := listOf(u)
		Expect(f.Admin().List(ctx, all, client.InNamespace(u.GetNamespace()))).To(Succeed())
		var names []string
		for _, item := range all.Items {
			if strings.HasPrefix(item.GetName(), u.GetGenerateName()) {
				names = append(names, item.GetName())
			}
		}
		return names
	}
	switch err := f.Admin().Get(ctx, client.ObjectKeyFromObject(u), u); {
	case apierrors.IsNotFound(err):
		return nil
	default:
		Expect(err).NotTo(HaveOccurred())
	}
	if u.GetKind() == "ResourceQuota" { // its controller may change the status at any moment
		u.SetResourceVersion("")
		u.SetManagedFields(nil)
		delete(u.Object, "status")
	}
	return u.Object
}

// actor is somebody with a token, perhaps acting as somebody else.
type actor struct {
	user string
	as   rest.ImpersonationConfig
}

func (a actor) String() string {
	if a.as.UserName == "" {
		return a.user
	}
	return fmt.Sprintf("%s as %s %q", a.user, a.as.UserName, a.as.Groups)
}

func (f *fixture) caller(by actor) caller {
	c := caller{Client: f.As(by.user), Admin: f.Admin()}
	var flags []string
	if by.as.UserName != "" {
		c.Client = f.Impersonate(by.user, by.as)
		flags = append(flags, "--as="+by.as.UserName)
		for _, group := range by.as.Groups {
			flags = append(flags, "--as-group="+group)
		}
	}
	c.Kubectl = func(ctx context.Context, stdin string, args ...string) error {
		_, stderr, code := f.KubectlWith(ctx, by.user, stdin, append(args, flags...)...)
		if code != 0 {
			return kubectlError(stderr)
		}
		return nil
	}
	return c
}

// kubectlError is what kubectl printed.
type kubectlError string

func (e kubectlError) Error() string { return string(e) }

// codeOf is the code of the API server's answer, 0 if the error doesn't show it.
func codeOf(err error) int {
	var status apierrors.APIStatus
	var printed kubectlError
	switch {
	case errors.As(err, &status):
		return int(status.Status().Code)
	case errors.As(err, &printed) && (strings.Contains(err.Error(), "(Forbidden)") || strings.Contains(err.Error(), "is forbidden: ")):
		return http.StatusForbidden
	case errors.As(err, &printed) && strings.Contains(err.Error(), "is invalid"):
		return http.StatusUnprocessableEntity
	}
	return 0
}
