package report_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("what a tenant writes", func() {
	It("SEC-X30 `access`, `who-can`, `describe`, `tree`: no line feed, terminal escape (7 or 8 bit) or reversing character of a "+
		"RoleBinding or Event reaches the terminal raw; SEC-X30 each text is "+
		"on one line, escaped as `\\n`, `\\x1b`, `\\u202e`", func(ctx SpecContext) {
		const (
			forged = "eve\nUser   root   managers\x1b[2J\u009b31m\r\u202etoor"
			shown  = `eve\nUser   root   managers\x1b[2J\u009b31m\r\u202etoor`
		)
		world.Create(ctx, build.Tenant("scribes").Users("dave").Managers("mia").Object())
		world.Ready(ctx, build.Tenant("scribes").Object())
		grow(ctx, world, "scribes", "scribes-web")
		dave := world.As("dave")
		Eventually(func() error {
			return dave.Create(ctx, build.RoleBinding("scribes", "forger", "view", build.RBACUser(forged)))
		}).WithContext(ctx).Should(Succeed())
		Expect(dave.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "scribes", Name: "forged"},
			InvolvedObject: corev1.ObjectReference{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "SubNamespace", Name: "scribes-web", Namespace: "scribes",
			},
			Type: corev1.EventTypeWarning, Reason: "Forged", Message: forged, LastTimestamp: metav1.NewTime(time.Now()),
		})).To(Succeed())

		for line, holds := range map[string]bool{
			"access scribes": true, "who-can get pods -n scribes": true, "describe scribes": false, "tree scribes": false,
			"describe scribes-web": true,
		} {
			for _, who := range []string{controlplane.Admin, "mia", "dave"} {
				out, problems, _ := world.Kubectl(ctx, who, append([]string{"warren"}, strings.Fields(line)...)...)
				for _, raw := range []string{"\x1b", "\r", "\u009b", "\u202e", "\nUser   root   managers"} {
					Expect(out+problems).NotTo(ContainSubstring(raw), "%s as %s", line, who)
				}
				if holds && who == controlplane.Admin {
					Expect(out).To(ContainSubstring(shown), line)
				}
			}
		}
	})

	It("SEC-X38 `access`, `who-can` and `describe` with -o json and -o yaml: status 0, a parser gets each name and Event as written, and "+
		"no control character is raw", func(ctx SpecContext) {
		name := "eve\u009b31m\u0085\u2028\u202e\ufeff\uffff\x7f\x1b\x01<&>"
		world.Create(ctx, build.Tenant("poets").Users("dave").Managers("mia").Object())
		world.Ready(ctx, build.Tenant("poets").Object())
		grow(ctx, world, "poets", "poets-web")
		dave := world.As("dave")
		Eventually(func() error {
			return dave.Create(ctx, build.RoleBinding("poets", "forger", "view", build.RBACUser(name)))
		}).WithContext(ctx).Should(Succeed())
		Expect(dave.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "poets", Name: "forged"},
			InvolvedObject: corev1.ObjectReference{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "SubNamespace", Name: "poets-web", Namespace: "poets",
			},
			Type: corev1.EventTypeWarning, Reason: "Forged", Message: name, LastTimestamp: metav1.NewTime(time.Now()),
		})).To(Succeed())
		for _, line := range []string{"access poets", "who-can get pods -n poets", "describe poets-web"} {
			for format, decode := range map[string]func([]byte, any) error{
				"json": json.Unmarshal, "yaml": func(document []byte, into any) error { return yaml.Unmarshal(document, into) },
			} {
				words := append([]string{"warren"}, strings.Fields(line+" -o "+format)...)
				out, problems, status := world.Kubectl(ctx, controlplane.Admin, words...)
				Expect(status).To(BeZero(), "%s: %s", words, problems)
				var report any
				Expect(decode([]byte(out), &report)).To(Succeed(), "%s", words)
				Expect(fmt.Sprint(report)).To(ContainSubstring(name), "%s", words)
				for _, raw := range []string{"\x1b", "\u009b", "\u0085", "\u202e"} {
					Expect(out).NotTo(ContainSubstring(raw), "%s", words)
				}
			}
		}
	})
})
