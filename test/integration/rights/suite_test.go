// Package rights_test takes the operator's rules away one by one and shows that something fails without each: no right is
// held for later (docs/design.md, "Rules that hold everywhere").
package rights_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

var manager string

func TestRights(t *testing.T) { suite.Run(t, "Rights") }

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	manager, err = devcluster.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
})
