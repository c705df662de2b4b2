package configfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

func TestFeatureGates(t *testing.T) {
	cases := map[string]struct {
		reason string
		flag   string
		want   map[string]bool
		err    string
	}{
		"None":     {reason: "an empty flag sets nothing", flag: "", want: map[string]bool{}},
		"One":      {reason: "a known gate", flag: "PropagateGenerated=false", want: map[string]bool{"PropagateGenerated": false}},
		"Unknown":  {reason: "names what is known", flag: "Foo=true", err: `--feature-gates: "Foo": unknown feature gate: known are PropagateGenerated`},
		"NotABool": {reason: "both problems in one answer", flag: "PropagateGenerated=on,Bar", err: "--feature-gates: \"PropagateGenerated=on\" must be NAME=true or NAME=false\n--feature-gates: \"Bar\" must be NAME=true or NAME=false"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := configfile.ParseFeatureGates(tc.flag)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.err, message); diff != "" {
				t.Errorf("%s: -want error, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	t.Run("the flag wins over the file", func(t *testing.T) {
		c, err := configfile.Parse("f", []byte(header+"featureGates: {PropagateGenerated: true}\n"), configfile.WithFeatureGates(map[string]bool{config.PropagateGenerated: false}))
		if err != nil || c.FeatureEnabled(config.PropagateGenerated) {
			t.Errorf("the flag closes what the file opens, got %v, %v", c, err)
		}
	})
}

func TestKnownGates(t *testing.T) {
	if got := configfile.KnownGates(); got != "PropagateGenerated=false" {
		t.Errorf("SUB-F11 --help lists %q", got)
	}
	if gates, err := configfile.ParseFeatureGates(configfile.KnownGates()); err != nil || len(gates) == 0 {
		t.Errorf("SUB-F11 the flag takes %v: %v", gates, err)
	}
}
