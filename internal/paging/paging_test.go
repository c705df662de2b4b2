package paging_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/paging"
)

// pages answers lists as the API server does. The token of a page is the index of its first object. The token in expires is refused as
// expired, and the refusal has a token with which the list can continue.
type pages struct {
	client.Reader
	names   []string
	expires string
	asked   []string
}

func (p *pages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	p.asked = append(p.asked, o.Continue)
	if o.Continue != "" && o.Continue == p.expires {
		err := apierrors.NewResourceExpired("the moment is compacted away")
		err.ErrStatus.Continue = o.Continue + "!"
		return err
	}
	first, _ := strconv.Atoi(trimMark(o.Continue))
	last := min(first+int(o.Limit), len(p.names))
	for _, name := range p.names[first:last] {
		secrets := list.(*corev1.SecretList)
		secrets.Items = append(secrets.Items, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if last < len(p.names) {
		list.SetContinue(strconv.Itoa(last))
	}
	return nil
}

func trimMark(token string) string {
	if n := len(token); n > 0 && token[n-1] == '!' {
		return token[:n-1]
	}
	return token
}

func TestEach(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for name, tc := range map[string]struct {
		expires string
		asked   []string
	}{
		"InPages":  {asked: []string{"", "2", "4"}},
		"OutLived": {expires: "2", asked: []string{"", "2", "2!", "4"}},
	} {
		t.Run(name, func(t *testing.T) {
			api, got := &pages{names: names, expires: tc.expires}, []string{}
			err := paging.Each(t.Context(), api, &corev1.SecretList{}, 2, func(o client.Object) error {
				got = append(got, o.GetName())
				return nil
			})
			if err != nil || !slices.Equal(got, names) || !slices.Equal(api.asked, tc.asked) {
				t.Errorf("got %v by asking for %q: %v", got, api.asked, err)
			}
		})
	}
	t.Run("EndsWithTheFirstError", func(t *testing.T) {
		api, calls := &pages{names: names}, 0
		err := paging.Each(t.Context(), api, &corev1.SecretList{}, 2, func(client.Object) error { calls++; return context.Canceled })
		if !errors.Is(err, context.Canceled) || calls != 1 || len(api.asked) != 1 {
			t.Errorf("%d calls, %d pages: %v", calls, len(api.asked), err)
		}
	})
}
