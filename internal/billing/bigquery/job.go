package bigquery

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"cloud.google.com/go/bigquery"
	"github.com/google/uuid"
	"google.golang.org/api/googleapi"

	"github.com/warren-tenancy/warren/internal/pause"
)

// The waits before a request is repeated: the first is firstWait, and each next one is doubled up to lastWait.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second
)

// runStatement executes a statement, and returns its job once the job is done without an error.
func (c *conn) runStatement(ctx context.Context, text string, args []driver.NamedValue) (*bigquery.Job, error) {
	client, err := c.ensureClient(ctx)
	if err != nil {
		return nil, err
	}
	if c.options.ReadOnly {
		err = c.checkQuery(ctx, c.newQuery(client, text, args), client)
	}
	var job *bigquery.Job
	if err == nil {
		job, err = c.submitJob(ctx, c.newQuery(client, text, args), client)
	}
	if err == nil {
		err = waitForJob(ctx, job)
	}
	if err == nil {
		return job, nil
	}
	err = describeError(err)
	var known *Error
	if errors.As(err, &known) && known.aboutCredentials() {
		c.dropClient(client)
	}
	return nil, err
}

// checkQuery returns an error unless a dry run says that the statement is a query, which changes nothing.
func (c *conn) checkQuery(ctx context.Context, q *bigquery.Query, client *bigquery.Client) error {
	q.DryRun = true
	job, err := c.submitJob(ctx, q, client)
	if err != nil {
		return err
	}
	if err := job.LastStatus().Err(); err != nil {
		return err
	}
	kind := "unknown"
	if s, ok := job.LastStatus().Statistics.Details.(*bigquery.QueryStatistics); ok {
		kind = s.StatementType
	}
	if kind != "SELECT" {
		return &Error{reason: reasonReadOnly, err: fmt.Errorf("BigQuery calls the statement %s, and only SELECT changes nothing", kind)}
	}
	return nil
}

// newQuery returns a query with positional parameters and a new job ID.
func (c *conn) newQuery(client *bigquery.Client, text string, args []driver.NamedValue) *bigquery.Query {
	q := client.Query(text)
	q.DefaultProjectID, q.DefaultDatasetID, q.Location = c.options.Project, c.options.Dataset, c.options.Location
	q.MaxBytesBilled, q.JobTimeout = c.options.MaximumBytesBilled, c.options.StatementTimeout
	q.JobID = "warren-billing-" + uuid.NewString()
	for _, arg := range args {
		q.Parameters = append(q.Parameters, bigquery.QueryParameter{Value: arg.Value})
	}
	return q
}

// submitJob sends the job to BigQuery. If the answer is lost, submitJob sends the same job again; a 409 then means that
// the first request has arrived. Google's client itself repeats some requests, such as after a 503, until the context
// ends.
func (c *conn) submitJob(ctx context.Context, q *bigquery.Query, client *bigquery.Client) (*bigquery.Job, error) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		job, err := q.Run(ctx)
		switch {
		case err == nil:
			return job, nil
		case statusOf(err) == http.StatusConflict:
			return client.JobFromProject(ctx, c.options.Project, q.JobID, c.options.Location)
		case !isLost(err):
			return nil, err
		}
		if pause.For(ctx, wait) != nil {
			return nil, fmt.Errorf("%w; the last error: %w", ctx.Err(), err)
		}
	}
}

// waitForJob polls the job's status until the job is done, and returns the job's error.
func waitForJob(ctx context.Context, job *bigquery.Job) error {
	status := job.LastStatus()
	for wait := firstWait; !status.Done(); wait = min(2*wait, lastWait) {
		if err := pause.For(ctx, wait); err != nil {
			return fmt.Errorf("job %s is not done: %w", job.ID(), err)
		}
		asked, err := job.Status(ctx)
		switch {
		case err == nil:
			status = asked
		case !isLost(err):
			return err
		}
	}
	return status.Err()
}

// isLost reports whether it is unknown if the request has arrived, or the API answered 429. The same request is then
// sent again.
func isLost(err error) bool {
	var transport *url.Error
	return statusOf(err) == http.StatusTooManyRequests || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &transport) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !isCredentials(err)
}

// statusOf returns the HTTP status of an answer of the API, or 0 for other errors.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*googleapi.Error](err); ok {
		return answer.Code
	}
	return 0
}
