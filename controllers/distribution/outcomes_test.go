package distribution

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/warren-tenancy/warren/internal/distribute"
)

// While a target is put off the object in its way may go: nothing else would have the target looked at again.
func TestWhatCannotBeTakenUpIsLookedAtAgain(t *testing.T) {
	immutable := apierrors.NewInvalid(secrets.GroupKind(), "s", field.ErrorList{field.Forbidden(field.NewPath("data"), "is immutable")})
	for name, err := range map[string]error{
		"DIST-D91 it is immutable": immutable,
		"DIST-D91 it is refused":   apierrors.NewForbidden(corev1.Resource("secrets"), "s", nil),
	} {
		t.Run(name, func(t *testing.T) {
			c, r := newReviewed(t)
			c.facts.settings.RetryMin, c.facts.settings.RetryMax = time.Millisecond, time.Millisecond
			c.queue.Lead()
			slot := r.in.Template.Slot("d1")
			c.targets.outcomes.note(work{run: r, distribution: r.in.Distribution, slot: slot, action: distribute.Action{Verb: distribute.Overwrite}}, err)
			late := time.AfterFunc(time.Minute, c.queue.ShutDown)
			defer late.Stop()
			var got key
			if !c.queue.WorkOne(func(k key) (inVain bool) { got = k; return false }) || got != (key{"rd", "d1"}) {
				t.Errorf("%v is looked at again, want namespace d1 of rd", got)
			}
		})
	}
}

func TestDescribeRefusal(t *testing.T) {
	ofPolicy := apierrors.NewInvalid(secrets.GroupKind(), "s", nil)
	ofPolicy.ErrStatus.Message = `secrets "s" is forbidden: ValidatingAdmissionPolicy 'frozen' with binding 'frozen' denied request: frozen until the audit is over`
	ofPolicy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "frozen until the audit is over"}}
	ofField := apierrors.NewInvalid(secrets.GroupKind(), "s", field.ErrorList{field.Invalid(field.NewPath("data", "k"), "s3ntinel", "is wrong")})
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"DIST-D97 a policy's text is shown":           {ofPolicy, ofPolicy.ErrStatus.Message},
		"DIST-D97 a value of the object is not shown": {ofField, "the API server refuses it as invalid: data.k"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describeRefusal(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
