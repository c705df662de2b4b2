package authorizer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/internal/authority"
)

// agreeable answers every question with yes, and counts the questions.
type agreeable struct{ asked atomic.Int32 }

func (a *agreeable) Review(context.Context, authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	a.asked.Add(1)
	return true, nil
}

func overKeys(count int) []authority.Question {
	var questions []authority.Question
	for i := range count {
		questions = append(questions, authority.Question{Right: authority.UpdateNamespaces, Role: fmt.Sprintf("key %d", i)})
	}
	return questions
}

func TestSameQuestionIsAskedOnce(t *testing.T) {
	t.Run("SEC-W32 2,000 keys that all need the same right cause one question to the authorizer", func(t *testing.T) {
		a := &agreeable{}
		yes, err := Asker{Authorizer: a}.AskAll(t.Context(), authenticationv1.UserInfo{}, overKeys(2000))
		if err != nil || len(yes) != 2000 || !yes[0] || !yes[1999] {
			t.Fatalf("got %d answers, %v", len(yes), err)
		}
		if got := a.asked.Load(); got != 1 {
			t.Errorf("asked %d times, want once", got)
		}
	})
}

func TestManyNamespacesAreOneQuestion(t *testing.T) {
	t.Run("SEC-W32 a name that 51 namespaces wait for causes one question", func(t *testing.T) {
		a := &agreeable{}
		names := make([]string, namespacesPerRequest+1)
		for i := range names {
			names[i] = fmt.Sprintf("n%d", i)
		}
		if yes, err := (Asker{Authorizer: a}).HasAuthority(t.Context(), authenticationv1.UserInfo{}, names); err != nil || !yes {
			t.Fatalf("got %v, %v", yes, err)
		}
		if got := a.asked.Load(); got != 1 {
			t.Errorf("asked %d times, want once", got)
		}
	})
}

func TestLimit(t *testing.T) {
	t.Run("SEC-W32 what exceeds the limit is refused with 429, without a question", func(t *testing.T) {
		a := &agreeable{}
		ask := Asker{Authorizer: limited{a, rate.NewLimiter(0, 3)}}
		var refused int
		for range 10 {
			switch yes, err := ask.IsClusterAdmin(t.Context(), authenticationv1.UserInfo{}); {
			case apierrors.IsTooManyRequests(err):
				refused++
			case err != nil || !yes:
				t.Fatalf("got %v, %v", yes, err)
			}
		}
		if got := a.asked.Load(); got != 3 || refused != 7 {
			t.Errorf("asked %d times and refused %d, want 3 and 7", got, refused)
		}
		if _, err := ask.AskAll(t.Context(), authenticationv1.UserInfo{}, overKeys(2)); !apierrors.IsTooManyRequests(err) {
			t.Errorf("AskAll: got %v, want 429", err)
		}
		if limit := Limit(a).(limited).limiter; limit.Limit() != questionsPerSecond || limit.Burst() != questionsAtOnce {
			t.Errorf("the limiter in force lets through %v a second, %d at once", limit.Limit(), limit.Burst())
		}
	})
}
