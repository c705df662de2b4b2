package trees_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// grove is the tree of SUB-D6. Below the root are c1 and f. Below c1 is c2, below f is g. All are bound, except f. The root allows
// cascading deletion and propagates a Secret.
type grove struct {
	tenant             *v1alpha1.LNamespace
	root, c1, c2, f, g string
}

func plant(ctx context.Context, c cluster, prefix string) grove {
	GinkgoHelper()
	g := grove{
		tenant: build.Tenant(prefix + "-root").Cascading().Object(),
		root:   prefix + "-root", c1: prefix + "-c1", c2: prefix + "-c2", f: prefix + "-f", g: prefix + "-g",
	}
	c.Create(ctx, g.tenant)
	Eventually(c.ns(g.root)).WithContext(ctx).Should(noted(v1alpha1.AnnotationCascading, "true"))
	c.label(ctx, g.root, "team=neco")
	c.Create(ctx, build.Secret(g.root, "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate), build.Child(g.f, g.root))
	Eventually(c.ns(g.f)).WithContext(ctx).Should(standing(g.root, "1"))
	c.grow(ctx, g.root+"/"+g.c1, g.c1+"/"+g.c2, g.f+"/"+g.g)
	for _, name := range []string{g.c1, g.c2, g.f, g.g} {
		Eventually(c.Read(build.Secret(name, "key", "x"))).WithContext(ctx).Should(Succeed(), "the copy in %s", name)
	}
	return g
}

// expectCascade expects that the root, c1, c2 and the LNamespace are deleted.
func (g grove) expectCascade(ctx context.Context, c cluster) {
	GinkgoHelper()
	for _, name := range []string{g.root, g.c1, g.c2} {
		c.Gone(ctx, build.Namespace(name))
	}
	c.Gone(ctx, g.tenant)
}
