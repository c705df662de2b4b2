package copyengine_test

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copies/copiestest"
)

var planted, acme, limited = copiestest.Planted, copiestest.Acme, copiestest.Limited

const update, create = v1alpha1.ModeUpdate, v1alpha1.ModeCreate

var secret, configMap = schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ConfigMap"}

func in(namespace string, kind schema.GroupKind, name string) copies.Slot {
	return copies.Slot{Kind: kind, Namespace: namespace, Name: name}
}

// at is the slot of Secret s, which most tests are about.
func at(namespace string) copies.Slot { return in(namespace, secret, "s") }

// other is the slot of another Secret in that namespace.
func other(namespace string) copies.Slot { return in(namespace, secret, "other") }
