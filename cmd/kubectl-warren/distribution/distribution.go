// Package distribution shows ResourceDistributions: their progress, what is in conflict, and what a change would do.
package distribution

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// List reads all ResourceDistributions, or the named ones.
func List(ctx context.Context, api client.Reader, names []string) ([]v1alpha1.ResourceDistribution, error) {
	if len(names) == 0 {
		list := &v1alpha1.ResourceDistributionList{}
		if err := api.List(ctx, list); err != nil {
			return nil, explainMissing(err)
		}
		return list.Items, nil
	}
	var all []v1alpha1.ResourceDistribution
	for _, name := range names {
		rd := v1alpha1.ResourceDistribution{}
		if err := api.Get(ctx, client.ObjectKey{Name: name}, &rd); err != nil {
			return nil, explainMissing(err)
		}
		all = append(all, rd)
	}
	return all, nil
}

// explainMissing replaces err by an explanation if the API server doesn't know the kind.
func explainMissing(err error) error {
	status, ok := err.(apierrors.APIStatus)
	if meta.IsNoMatchError(err) || ok && apierrors.IsNotFound(err) && (status.Status().Details == nil || status.Status().Details.Name == "") {
		return fmt.Errorf("this cluster has no kind ResourceDistribution: a cluster admin can install component distribution")
	}
	return err
}

// progress is a table of ResourceDistributions.
type progress []v1alpha1.ResourceDistribution

// Write writes a line for each ResourceDistribution.
func (all progress) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tTARGETS\tCURRENT\tOUTDATED\tMISSING\tCONFLICTS\tFAILED\tREADY\tREASON")
	for i := range all {
		s := &all[i].Status
		ready, reason := "Unknown", "the operator has not seen the last change yet"
		if c := v1alpha1.FindCondition(s.Conditions, v1alpha1.ConditionReady); c != nil &&
			s.ObservedGeneration == all[i].Generation {
			ready, reason = string(c.Status), c.Reason
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", all[i].Name, s.Targets, s.Current, s.Outdated, s.Missing, s.Conflicts,
			s.Failed, ready, reason)
	}
	return table.Flush()
}

// description is a ResourceDistribution as text.
type description struct{ *v1alpha1.ResourceDistribution }

// Write writes the whole status.
func (rd description) Write(w io.Writer) error {
	var text strings.Builder
	s := &rd.Status
	fmt.Fprintf(&text, "ResourceDistribution %s: %d of %d copies are current", rd.Name, s.Current, s.Targets)
	if s.ObservedGeneration != rd.Generation {
		text.WriteString(" (the operator has not seen the last change yet)")
	}
	fmt.Fprintf(&text, "\nconflictPolicy %s, driftPolicy %s, deletionPolicy %s (all copies now have: %s)\n",
		rd.Spec.ConflictPolicy, rd.Spec.DriftPolicy, rd.Spec.DeletionPolicy, s.DeletionPolicy)
	said := ""
	for _, c := range s.Conditions {
		if fmt.Fprintf(&text, "%s is %s: %s", c.Type, c.Status, c.Reason); c.Message != said {
			text.WriteString(", " + c.Message)
		}
		text.WriteString("\n")
		said = c.Message
	}
	printSection(&text, "In conflict", int(s.Conflicts), s.ConflictingNamespaces, func(one v1alpha1.ConflictingNamespace) string {
		return strings.TrimSpace(fmt.Sprintf("%s: %s %s", one.Name, one.Reason, one.By))
	})
	printSection(&text, "Failed", int(s.Failed), s.FailedNamespaces, func(one v1alpha1.FailedNamespace) string {
		return fmt.Sprintf("%s: %s, %s", one.Name, one.Reason, one.Message)
	})
	printSection(&text, "No copy, because the namespace was deleted and created again", len(s.Replaced), s.Replaced,
		func(name string) string { return name })
	printSection(&text, "Not found", len(s.NotFound), s.NotFound, func(name string) string { return name })
	_, err := io.WriteString(w, text.String())
	return err
}

func printSection[T any](text *strings.Builder, title string, count int, all []T, line func(T) string) {
	if count == 0 {
		return
	}
	fmt.Fprintf(text, "%s (%d):\n", title, count)
	for _, one := range all {
		text.WriteString("  " + line(one) + "\n")
	}
	if more := count - len(all); more > 0 {
		fmt.Fprintf(text, "  and %d more\n", more)
	}
}

// metadataList returns an empty list for the metadata of objects of a kind.
func metadataList(apiVersion, kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion, list.Kind = apiVersion, kind+"List"
	return list
}
