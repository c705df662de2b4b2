package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// hncSettings are the settings of the flags of HNC's Deployments.
type hncSettings struct {
	// uncopied are labels KEY=VALUE. HNC never copies an object that has one of them.
	uncopied []string
	// excluded are namespaces that HNC leaves alone. If included is set, HNC also leaves alone the namespaces that don't
	// match it.
	excluded []string
	included *regexp.Regexp
	// strippedLabels and strippedAnnotations are keys that HNC leaves out of copies.
	strippedLabels, strippedAnnotations []string
}

// rancherLabel is on the objects that Rancher makes in a project. HNC never copies them: its manifests set a flag for
// that, and old versions do it without a flag.
const rancherLabel = "cattle.io/creator=norman"

func settingsOfHNC(deployments []Deployment) (s hncSettings, err error) {
	s.uncopied = []string{rancherLabel}
	for _, d := range deployments {
		s.uncopied = append(s.uncopied, flagValues(d.Args, "nopropagation-label")...)
		s.excluded = append(s.excluded, flagValues(d.Args, "excluded-namespace")...)
		s.strippedLabels = append(s.strippedLabels, flagValues(d.Args, "unpropagated-label")...)
		s.strippedAnnotations = append(s.strippedAnnotations, flagValues(d.Args, "unpropagated-annotation")...)
		for _, pattern := range flagValues(d.Args, "included-namespace-regex") {
			if s.included, err = regexp.Compile("^" + pattern + "$"); err != nil {
				return s, fmt.Errorf("flag --included-namespace-regex of %s is no regular expression, so the namespaces that HNC manages "+
					"are not known; correct the flag: %w", objectFromMetadata(d.PartialObjectMetadata), err)
			}
		}
	}
	return s, nil
}

// flagValues returns the values of a flag in the arguments of a program: --flag=VALUE, --flag VALUE, and the same with
// one hyphen.
func flagValues(args []string, flag string) (values []string) {
	for i, arg := range args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != flag || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		values = append(values, value)
	}
	return values
}

// leavesAlone reports whether HNC does nothing in a namespace.
func (s hncSettings) leavesAlone(namespace string) bool {
	return slices.Contains(s.excluded, namespace) || s.included != nil && !s.included.MatchString(namespace)
}

// neverCopies reports whether HNC never copies an object, whatever HNC's annotations on it: because of a flag, or
// because a platform wrote it.
func (s hncSettings) neverCopies(object *metav1.PartialObjectMetadata) bool {
	for _, label := range s.uncopied {
		key, wanted, _ := strings.Cut(label, "=")
		if value, there := object.Labels[key]; there && value == wanted {
			return true
		}
	}
	if _, there := object.Annotations["openshift.io/description"]; there {
		return true
	}
	switch object.Kind {
	case "ConfigMap":
		return object.Name == "istio-ca-root-cert" || object.Name == "kube-root-ca.crt"
	case "Secret":
		return isHelmRelease(object)
	}
	return false
}

// isHelmRelease reports whether a Secret is of type helm.sh/release.v1. Only metadata is read, so its label and its
// name decide.
func isHelmRelease(secret *metav1.PartialObjectMetadata) bool {
	return secret.Labels["owner"] == "helm" && strings.HasPrefix(secret.Name, "sh.helm.release.v1.")
}

// compareFlagsOfHNC adds a gap for each key that HNC's flags leave out of copies, but Warren's configuration doesn't
// leave out.
func (e *Estate) compareFlagsOfHNC(s hncSettings, ours *config.OperatorConfiguration) {
	for _, list := range []struct {
		flag  string
		keys  []string
		field string
		have  config.Globs
	}{
		{"unpropagated-label", s.strippedLabels, "propagation.excludedLabels", ours.Propagation.ExcludedLabels},
		{"unpropagated-annotation", s.strippedAnnotations, "propagation.excludedAnnotations", ours.Propagation.ExcludedAnnotations},
	} {
		for _, key := range list.keys {
			if !list.have.Match(key) {
				e.addEstateGap(fmt.Sprintf("flag --%s=%s", list.flag, key),
					"before the migration, add it to "+list.field+" of Warren's configuration: else copies get it")
			}
		}
	}
}
