package changes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/restrict"
)

// Answer is what the API server has answered to a change.
type Answer struct {
	// Done reports whether the change was accepted, Refused whether it was answered with 403, as by RBAC, a policy or a
	// webhook.
	Done, Refused bool
	Sentence      string
	Warnings      []string
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 4 << 20

// DryRun has the API server try the action and store nothing.
func DryRun(ctx context.Context, config *rest.Config, action *Action) Answer {
	return sendAction(ctx, config, action, action.URI+"&dryRun=All")
}

// Send sends exactly the run's request.
func Send(ctx context.Context, config *rest.Config, run *Run) Answer {
	if run.Sudo != nil {
		config = rest.CopyConfig(config)
		config.Impersonate = *run.Sudo
	}
	return sendAction(restrict.Confirm(ctx, run.Action.Change), config, run.Action, run.Action.URI)
}

func sendAction(ctx context.Context, config *rest.Config, action *Action, uri string) Answer {
	answer, err := roundTrip(ctx, config, action, uri)
	if err != nil {
		return Answer{Sentence: failure.Describe(err)}
	}
	return answer
}

func roundTrip(ctx context.Context, config *rest.Config, action *Action, uri string) (Answer, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Answer{}, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return Answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, action.Method, strings.TrimSuffix(server.String(), "/")+uri,
		bytes.NewReader(action.Body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", action.ContentType)
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Answer{}, err
	}
	return readAnswer(response, body, action), nil
}

// testFailed is the API server's answer if operation "test" of a JSON patch finds another value. It names neither the
// operation nor the value.
const testFailed = "the server rejected our request due to an error in our request"

// readAnswer describes in words what the API server has answered.
func readAnswer(response *http.Response, body []byte, action *Action) Answer {
	answer := Answer{Done: response.StatusCode < http.StatusMultipleChoices,
		Refused: response.StatusCode == http.StatusForbidden}
	warnings, _ := utilnet.ParseWarningHeaders(response.Header["Warning"])
	for _, warning := range warnings {
		answer.Warnings = append(answer.Warnings, warning.Text)
	}
	if answer.Done {
		answer.Sentence = "Dry run: the API server would accept this change."
		return answer
	}
	status := metav1.Status{}
	if err := json.Unmarshal(body, &status); err != nil || status.Message == "" {
		answer.Sentence = fmt.Sprintf("the API server answered %s", response.Status)
		return answer
	}
	answer.Sentence = failure.Describe(&apierrors.StatusError{ErrStatus: status})
	if _, reason, byWebhook := strings.Cut(answer.Sentence, " denied the request: "); byWebhook {
		answer.Sentence = reason
	}
	if action.Method == http.MethodPatch && response.StatusCode == http.StatusUnprocessableEntity &&
		status.Message == testFailed {
		answer.Sentence = errListChanged.Error()
	}
	return answer
}
