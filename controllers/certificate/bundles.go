package certificate

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/servingcert"
)

// errOutdated reports that someone else wrote an object after we had read it.
var errOutdated = errors.New("the object has changed meanwhile")

// The kinds of our two webhook configurations.
const (
	validating = "ValidatingWebhookConfiguration"
	mutating   = "MutatingWebhookConfiguration"
)

// configuration is one of our two webhook configurations.
type configuration struct {
	kind   string
	object client.Object
	// bundles are the caBundles of its webhooks, in their order.
	bundles [][]byte
}

// readConfigurations returns those of our two configurations that exist.
func readConfigurations(ctx context.Context, c client.Reader) ([]configuration, error) {
	v, m := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
	var found []configuration
	for _, one := range []configuration{{kind: validating, object: v}, {kind: mutating, object: m}} {
		err := c.Get(ctx, client.ObjectKey{Name: ConfigurationName}, one.object)
		switch {
		case err == nil:
			found = append(found, one)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading %s %s: %w", one.kind, ConfigurationName, err)
		}
	}
	for i := range found {
		if found[i].kind == validating {
			for _, w := range v.Webhooks {
				found[i].bundles = append(found[i].bundles, w.ClientConfig.CABundle)
			}
			continue
		}
		for _, w := range m.Webhooks {
			found[i].bundles = append(found[i].bundles, w.ClientConfig.CABundle)
		}
	}
	return found, nil
}

// trustsCertificate reports whether the caBundle of every webhook in both configurations contains the certificate. A
// missing configuration has no webhooks.
func trustsCertificate(ctx context.Context, c client.Reader, leaf *x509.Certificate) (bool, error) {
	configurations, err := readConfigurations(ctx, c)
	if err != nil {
		return false, err
	}
	anchor := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	for _, one := range configurations {
		for _, bundle := range one.bundles {
			if !bytes.Contains(bundle, anchor) {
				return false, nil
			}
		}
	}
	return true, nil
}

// bundles keeps the caBundle of both configurations right.
type bundles struct {
	client client.Client
	// written is the resourceVersion of our last write, by kind: the cache may still hold an older version.
	written map[string]string
	// held are the contents of the Secret whose bundle both configurations have had since the time in field since. That
	// time has a monotonic clock reading, so a step of the wall clock shortens no wait. A new leader waits anew.
	held  servingcert.Contents
	since time.Time
}

// holdBundle writes the bundle of the contents into both configurations, and returns how long they have had it; -1 if
// they don't have it yet. It reverts another client's edit, but doesn't restart the wait then: otherwise a tool that
// edits once a minute would stop a rotation.
func (b *bundles) holdBundle(ctx context.Context, contents servingcert.Contents) (time.Duration, error) {
	bundle := contents.Bundle()
	configurations, err := readConfigurations(ctx, b.client)
	if err != nil {
		return -1, err
	}
	var problems []error
	settled, right := true, map[string]float64{validating: 0, mutating: 0}
	for _, one := range configurations {
		wrote, err := b.putBundle(ctx, one, bundle)
		problems = append(problems, err)
		settled = settled && !wrote
		if err == nil {
			right[one.kind] = 1
		}
	}
	for kind, value := range right {
		synced.WithLabelValues(kind).Set(value)
	}
	if err := errors.Join(problems...); err != nil || !settled {
		return -1, err
	}
	if b.since.IsZero() || !b.held.Equal(contents) {
		b.held, b.since = contents, time.Now()
	}
	return time.Since(b.since), nil
}

// putBundle writes the bundle into those webhooks of one configuration that have another bundle. wrote reports that it
// wrote, or that the cache doesn't hold an earlier write yet.
func (b *bundles) putBundle(ctx context.Context, c configuration, bundle []byte) (wrote bool, err error) {
	version := c.object.GetResourceVersion()
	if last, ok := b.written[c.kind]; ok && forest.IsNewer(last, version) {
		return true, nil
	}
	// The paths below name webhooks by their index, so the patch is only for the version that was read.
	patch := []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: version}}
	for i, present := range c.bundles {
		if !bytes.Equal(present, bundle) {
			patch = append(patch, operation{Op: "add", Path: fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), Value: bundle})
		}
	}
	if len(patch) == 1 {
		return false, nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return false, err
	}
	patched := c.object.DeepCopyObject().(client.Object)
	if err := b.client.Patch(ctx, patched, client.RawPatch(types.JSONPatchType, text)); err != nil {
		if testFailed(err) {
			err = errOutdated
		}
		return false, fmt.Errorf("writing the caBundle of %s %s: %w", c.kind, ConfigurationName, err)
	}
	b.written[c.kind] = patched.GetResourceVersion()
	return true, nil
}

// testFailed reports whether a JSON patch was refused because of its test operation: the API server answers with the
// code of an invalid object, but names no field.
func testFailed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}
