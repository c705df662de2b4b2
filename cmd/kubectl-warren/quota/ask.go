package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/budget"
)

// askPatience is how long the command waits for the share to grow: the operator needs less than a second if there is room.
const askPatience = 5 * time.Second

// ParseRequest reads what one object needs from words of the form RESOURCE=AMOUNT.
func ParseRequest(words []string) (corev1.ResourceList, error) {
	if len(words) == 0 {
		return nil, errors.New("name what one object needs: kubectl warren quota ask -n NAMESPACE RESOURCE=AMOUNT…")
	}
	asked := corev1.ResourceList{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		quantity, err := resource.ParseQuantity(value)
		_, twice := asked[corev1.ResourceName(key)]
		switch {
		case key == "" || value == "":
			return nil, fmt.Errorf("invalid request %q: must be RESOURCE=AMOUNT: write it such as pods=1", word)
		case twice:
			return nil, fmt.Errorf("%s: invalid amount %q: must be given once: add the amounts up", key, value)
		case err != nil:
			return nil, fmt.Errorf("%s: invalid amount %q: must be a quantity: write it such as 1, 500m or 500Gi", key, value)
		case quantity.Sign() <= 0:
			return nil, fmt.Errorf("%s: invalid amount %q: must be more than 0: name what one object needs", key, value)
		}
		asked[corev1.ResourceName(key)] = quantity
	}
	return asked, nil
}

// CheckLimited refuses resources that the share does not have.
func (s *Share) CheckLimited(asked corev1.ResourceList) error {
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		if _, limited := s.Hard[key]; !limited {
			return fmt.Errorf("%s: invalid resource: must be one that the share of %s has, which is %s: ask for these", key, s.Namespace,
				budget.FormatList(s.Hard, s.Hard))
		}
	}
	return nil
}

// findLacking returns the first resource of which the share does not admit what was asked; "" if it admits all.
func (s *Share) findLacking(asked corev1.ResourceList) corev1.ResourceName {
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		if !s.admits(key, asked[key]) {
			return key
		}
	}
	return ""
}

// askForRoom reports a refusal, as a controller does, by an Event with the user's own rights. It waits until the share admits what was
// asked; else the error states what holds.
func askForRoom(ctx context.Context, inv *invocation.Invocation, api client.Client, namespace string, asked corev1.ResourceList) error {
	share := &Share{Namespace: namespace}
	if err := share.readQuota(ctx, api); err != nil {
		return err
	}
	if err := share.CheckLimited(asked); err != nil {
		return err
	}
	if share.findLacking(asked) != "" {
		if err := api.Create(ctx, share.refusalEvent(asked)); err != nil {
			return fmt.Errorf("create an Event in %s, by which the operator learns of the request: %w", namespace, err)
		}
	}
	bounded, stop := context.WithTimeout(ctx, askPatience)
	defer stop()
	err := gather.PollUntil(bounded, func(ctx context.Context) (bool, error) {
		return share.findLacking(asked) == "", share.readQuota(ctx, api)
	})
	key := share.findLacking(asked)
	switch {
	case key == "":
		_, err := terminal.Fprintf(inv.Streams.Out, "The share of %s admits %s\n", namespace, budget.FormatList(asked, asked))
		return err
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if share, err = readShare(ctx, api, namespace); err != nil {
		return err
	}
	return errors.New(share.DescribeUnserved(key, asked[key]))
}

// refusalEvent returns the Event that a controller writes when the API server refuses to create an object that needs what was asked.
func (s *Share) refusalEvent(asked corev1.ResourceList) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: budget.QuotaName + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ResourceQuota", Namespace: s.Namespace, Name: budget.QuotaName},
		Reason:         "FailedCreate", Type: corev1.EventTypeWarning, Message: budget.FormatRefusal(asked, s.Used, s.Counted),
		Source: corev1.EventSource{Component: invocation.ProgramName}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}
