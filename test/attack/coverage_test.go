package attack_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/warren-tenancy/warren/internal/manifests"
)

var _ = Describe("the rows", func() {
	It("have an attack for each validation of each policy", func(ctx SpecContext) {
		refusals := wall.refusals(ctx)
		policies := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
		Expect(wall.Admin().List(ctx, policies)).To(Succeed())
		var idle []string
		for _, p := range policies.Items {
			if strings.HasPrefix(p.Name, manifests.HintPrefix) { // a hint only warns
				continue
			}
			for _, v := range p.Spec.Validations {
				if !strings.Contains(refusals, "'"+p.Name+"' with binding") || !strings.Contains(refusals, saying(v)) {
					idle = append(idle, p.Name+": "+v.Expression)
				}
			}
		}
		Expect(policies.Items).NotTo(BeEmpty())
		Expect(idle).To(BeEmpty(), "no row of the tables is refused by these")
	})
})

// refusals returns all messages with which the policies refuse the requests of the tables.
func (f *fixture) refusals(ctx context.Context) string {
	var all strings.Builder
	for _, r := range rows() {
		for _, t := range r.tries {
			for _, request := range t.requests {
				if t.refuser != policy {
					continue
				}
				if err := request.send(ctx, f.caller(t.by).rehearsing()); err != nil {
					all.WriteString(err.Error())
				}
			}
		}
	}
	return all.String()
}

// saying returns the message of a validation. Of a computed message, it returns the longest part that is always the same.
func saying(v admissionregistrationv1.Validation) string {
	longest := v.Message
	for i, part := range strings.Split(v.MessageExpression, "'") {
		if quoted := i%2 == 1; quoted && len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
