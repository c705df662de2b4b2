// Package tenants_test shows what an LNamespace gives to its people and takes from them, on a real control plane. Each person has a
// token, and impersonation is real. The admission policies are in force. The Worlds serve no webhook.
//
// A number such as ACC-S01 in the name of a test says that all of that row of docs/behaviour/access.md was seen. A test
// that shows only a part of its row has the number in a comment.
package tenants_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

// soon is how long a case watches that nothing happens.
const soon = 20 * time.Second

// The Worlds of the suite: world grants sudo in mode Legacy, constrained in mode Constrained. constrained is nil if
// the API server doesn't know constrained impersonation.
var world, constrained *devcluster.World

func TestTenants(t *testing.T) { suite.Run(t, "Tenants") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	users := map[string][]string{}
	for letter, count := range map[string]int{"d": 5, "n": 14, "r": 22, "s": 31, "v": 9, "w": 7, "x": 2, "c": 6, "h": 9, "l": 6, "t": 7} {
		for n := 1; n <= count; n++ {
			maps.Copy(users, people(fmt.Sprintf("%s%02d", letter, n)))
		}
	}
	for _, name := range awkwardNames {
		users[name] = nil
	}
	return startBoth(ctx, users)
}, func(data []byte) {
	connectBoth(data)
})

// ownWorld starts a World for cases that stop something, with the people of those cases.
func ownWorld(ctx SpecContext, options devcluster.Options, keys ...string) *devcluster.World {
	GinkgoHelper()
	options.ControlPlane.Users = map[string][]string{}
	for _, key := range keys {
		maps.Copy(options.ControlPlane.Users, people(key))
	}
	w, err := devcluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return w
}
