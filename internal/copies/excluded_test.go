package copies_test

import (
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestExcluded(t *testing.T) {
	core := func(kind string) schema.GroupKind { return schema.GroupKind{Kind: kind} }
	helm := map[string]string{"owner": "helm"}
	cases := map[string]struct {
		kind       schema.GroupKind
		name       string
		secretType string
		meta       metav1.ObjectMeta
		want       string // a part of the reason; empty if the object is propagated
	}{
		"Secret":          {kind: secret, name: "s", secretType: "Opaque"},
		"TypeNotKnownYet": {kind: secret, name: "s"},
		"ServiceAccountToken": {kind: secret, name: "s", secretType: "kubernetes.io/service-account-token",
			want: "service-account-token are never propagated"},
		"BootstrapToken":    {kind: secret, name: "s", secretType: "bootstrap.kubernetes.io/token", want: "bootstrap.kubernetes.io/token"},
		"HelmRelease":       {kind: secret, name: "s", secretType: "helm.sh/release.v1", want: "helm.sh/release.v1"},
		"TypeOfAnotherKind": {kind: schema.GroupKind{Group: "example.com", Kind: "Secret"}, name: "s", secretType: "helm.sh/release.v1"},
		"HelmReleaseConfigMap": {kind: core("ConfigMap"), name: "sh.helm.release.v1.x", meta: metav1.ObjectMeta{Labels: helm},
			want: "Helm releases"},
		"HelmNameAlone":         {kind: core("ConfigMap"), name: "sh.helm.release.v1.x"},
		"HelmLabelAlone":        {kind: core("ConfigMap"), name: "x", meta: metav1.ObjectMeta{Labels: helm}},
		"RootCA":                {kind: core("ConfigMap"), name: "kube-root-ca.crt", want: "the platform writes kube-root-ca.crt"},
		"OpenShiftCA":           {kind: core("ConfigMap"), name: "openshift-service-ca.crt", want: "the platform"},
		"IstioCA":               {kind: core("ConfigMap"), name: "istio-ca-root-cert", want: "the platform"},
		"DefaultServiceAccount": {kind: core("ServiceAccount"), name: "default", want: "the platform"},
		"OtherServiceAccount":   {kind: core("ServiceAccount"), name: "builder"},
		"KubernetesService":     {kind: core("Service"), name: "kubernetes", want: "the platform"},
		"KubernetesEndpoints":   {kind: core("Endpoints"), name: "kubernetes", want: "the platform"},
		"NameOfAnotherKind":     {kind: secret, name: "kube-root-ca.crt"},
		"NameInAnotherGroup":    {kind: schema.GroupKind{Group: "serving.knative.dev", Kind: "Service"}, name: "kubernetes"},
		"Finalizers": {kind: secret, name: "s", meta: metav1.ObjectMeta{Finalizers: []string{"a/b", "c/d"}},
			want: "it has finalizers (a/b, c/d)"},
		"ConfiguredName": {kind: secret, name: "never", want: "propagation.neverPropagate"},
		"ConfiguredType": {kind: secret, name: "s", secretType: "example.com/never", want: "propagation.neverPropagate"},
		"ConfiguredLabel": {kind: secret, name: "s", meta: metav1.ObjectMeta{Labels: map[string]string{"never": "true"}},
			want: "propagation.neverPropagate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slot := copies.Slot{Kind: tc.kind, Namespace: "acme", Name: tc.name}
			got := configured().Excluded(slot, &tc.meta, tc.secretType)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Excluded = %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestRenderExcludesByType(t *testing.T) {
	body, _ := rendered(t, configured(), "{apiVersion: v1, kind: Secret, metadata: {name: s}, type: helm.sh/release.v1}")
	if !strings.Contains(body.Excluded, "helm.sh/release.v1") {
		t.Errorf("Excluded = %q", body.Excluded)
	}
}

func TestSourceOf(t *testing.T) {
	labelled := func(value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPropagate: value}}
	}
	selecting := func(m metav1.ObjectMeta, selector string) metav1.ObjectMeta {
		m.Annotations = map[string]string{v1alpha1.AnnotationSelect: selector}
		return m
	}
	hash := copies.Hash{Mode: update, Place: "0a8e873782d3bf40", Content: content("acme", 1)}.String()
	cases := map[string]struct {
		reason        string
		meta          metav1.ObjectMeta
		optIn, all    string // the source's mode, if the kind is in mode OptIn or All; empty if the object is no source
		invalid, says string
	}{
		"Unlabelled": {reason: "opting in is a label, but in mode All", all: update},
		"Update":     {reason: "labelled", meta: labelled(update), optIn: update, all: update},
		"Create":     {reason: "labelled", meta: labelled(create), optIn: create, all: create},
		"None": {reason: "an object that opts out is known, so that nothing has to be looked for", meta: labelled(none),
			optIn: none, all: none},
		"Typo": {reason: "can't be judged", meta: labelled("Update"), optIn: "Update", all: "Update",
			invalid: `must be create, update or none, not "Update"`},
		"EmptyValue": {reason: "an empty value is none of the three", meta: labelled(""), optIn: "-", all: "-", invalid: `not ""`},
		"Selector": {reason: "parsed", meta: selecting(labelled(update), "tier=web,a!=b"), optIn: update, all: update,
			says: "a!=b,tier=web"},
		"NoSelector": {reason: "an empty one selects all", meta: selecting(labelled(update), ""), optIn: update, all: update},
		"PROP-S5 a select of 4,097 bytes makes a source invalid, with \"has 4097 bytes: at " +
			"most 4096\"": {reason: "memory is everybody's", meta: selecting(labelled(update), strings.Repeat("a,", 2047)+"bbb"),
			optIn: update, all: update, invalid: "annotation tenancy.warren.dev/select has 4097 bytes: at most 4096"},
		"BadSelector": {reason: "can't be judged", meta: selecting(labelled(update), "$foo"), optIn: update, all: update,
			invalid: "annotation tenancy.warren.dev/select is no label selector"},
		"Copy": {
			reason: "a copy is never a source, whatever it is labelled with",
			meta:   metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelInheritedFrom: "acme", v1alpha1.LabelPropagate: update}},
		},
		"CopyWithoutLabel": {
			reason: "nor is one whose label somebody took off, nor one that a ResourceDistribution made",
			meta:   metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationSourceHash: hash}},
		},
		"NoHash": {
			reason: "what is no hash makes no copy", meta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationSourceHash: "x"}},
			all: update,
		},
	}
	for name, tc := range cases {
		for mode, want := range map[copies.KindMode]string{copies.OptIn: tc.optIn, copies.All: tc.all, copies.Remove: ""} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				got, ok := configured().SourceOf(at("acme"), &tc.meta, mode)
				if ok != (want != "") {
					t.Fatalf("%s: source: %t", tc.reason, ok)
				}
				if !ok {
					return
				}
				if got.Mode != strings.Trim(want, "-") || (got.Invalid == "") != (tc.invalid == "") || !strings.Contains(got.Invalid, tc.invalid) {
					t.Errorf("%s: mode %q, invalid %q", tc.reason, got.Mode, got.Invalid)
				}
				if got.Selector != nil != (tc.says != "") || got.Selector != nil && got.Selector.String() != tc.says {
					t.Errorf("%s: selector %v", tc.reason, got.Selector)
				}
			})
		}
	}
}

func TestSourceOfNotesWhatElseCounts(t *testing.T) {
	m := metav1.ObjectMeta{UID: "u", ResourceVersion: "7", DeletionTimestamp: &written, Finalizers: []string{"f"},
		Labels: map[string]string{v1alpha1.LabelPropagate: update}}
	s, ok := configured().SourceOf(at("acme"), &m, copies.OptIn)
	if !ok || s.UID != "u" || s.ResourceVersion != "7" || !s.Terminating || s.Excluded == "" || s.Content != "" {
		t.Errorf("SourceOf = %+v, %t", s, ok)
	}
}

// TestLongSelectorsCostNoMemory stores six sources with long selectors, which would need millions of bytes if they were parsed.
func TestLongSelectorsCostNoMemory(t *testing.T) {
	t.Run("PROP-S5 six sources with a select of 190 kB each need less than 1 MiB of heap", func(t *testing.T) {
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		meta := metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPropagate: update},
			Annotations: map[string]string{v1alpha1.AnnotationSelect: strings.Repeat("a,", 95_000) + "a"}}
		before := heap()
		var sources []*copies.Source
		for range 6 {
			source, is := configured().SourceOf(at("acme"), &meta, copies.OptIn)
			if !is || source.Invalid == "" {
				t.Fatalf("%t, %q", is, source.Invalid)
			}
			sources = append(sources, source)
		}
		if after := heap(); after > before+1<<20 {
			t.Errorf("%d sources cost %d bytes", len(sources), after-before)
		}
		runtime.KeepAlive(sources)
	})
}
