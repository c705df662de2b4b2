package sudo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// row is a line of the list, by the name of its request.
type row struct{ name, text string }

// listRequests prints the requests of a tenant, and with -w each change that follows.
func (c *call) listRequests(ctx context.Context, a *asking) error {
	api, me, tenant, err := c.beginRequest(ctx)
	if err != nil {
		return err
	}
	printed := map[string]string{}
	for begun := false; ; begun = true {
		all := &v1alpha1.SudoRequestList{}
		if err := api.List(ctx, all, client.InNamespace(tenant)); err != nil {
			return fmt.Errorf("listing the requests of %s: %w", tenant, err)
		}
		var rows []row
		for _, row := range buildRows(all.Items, me, a) {
			if printed[row.name] != row.text {
				printed[row.name] = row.text
				rows = append(rows, row)
			}
		}
		switch {
		case !begun && len(rows) == 0:
			terminal.Fprintf(c.streams.ErrOut, "%s has no such requests\n", tenant)
		case len(rows) > 0:
			if err := printRows(c.streams.Out, rows, !begun); err != nil {
				return err
			}
		}
		if !a.watching {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookPause):
		}
	}
}

// buildRows returns the rows of the requests that a command wants, the newest last.
func buildRows(requests []v1alpha1.SudoRequest, me string, a *asking) (rows []row) {
	slices.SortStableFunc(requests, func(x, y v1alpha1.SudoRequest) int {
		return x.CreationTimestamp.Compare(y.CreationTimestamp.Time)
	})
	for i := range requests {
		r := &requests[i]
		state := describeState(r)
		if a.onlyMine && r.Spec.User != me || a.onlyPending && state != string(v1alpha1.ReasonPending) && state != "New" {
			continue
		}
		cells := []string{r.Name, r.Spec.User, string(r.Spec.Duration), state, describeEnd(r), r.Spec.Reason}
		for i := range cells {
			cells[i] = terminal.Escape(cells[i])
		}
		rows = append(rows, row{r.Name, strings.Join(cells, "\t")})
	}
	return rows
}

func printRows(w io.Writer, rows []row, withHead bool) error {
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	if withHead {
		fmt.Fprintln(table, "NAME\tUSER\tFOR\tSTATE\tENDS\tREASON")
	}
	for _, row := range rows {
		fmt.Fprintln(table, row.text)
	}
	return table.Flush()
}
